"""Runs the kind `nats`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, assert_never

import msgspec
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ObjectInfo, ObjectMeta
from nats.js.kv import KeyValue

from noetl.model.json import Json
from noetl.model.outcome import Outcome, ToolError
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import input_text
from noetl.tools.host.tool_attempt import inputs_of, refuse_faults
from noetl.tools.nats.connections import NatsConnection, NatsConnections
from noetl.tools.nats.kind import NatsInputs, check
from noetl.tools.objects.content import MEDIA_TYPES, media_type_by_suffix
from noetl.tools.objects.object_inputs import ObjectInputs
from noetl.tools.objects.operation import open_put_source, read_value, run_operation, store_file

_WRONG_REVISION = 10071
"""What the server answers if the last revision of a key is another one."""


class NatsTool:
    """One connection for each server and user, shared by the tasks of a worker."""

    def __init__(self) -> None:
        self._connections = NatsConnections()

    async def run(self, call: Call) -> Outcome:
        return await run_operation(call, self._run_action)

    async def close(self) -> None:
        await self._connections.close()

    async def _run_action(self, call: Call) -> Any:
        inputs = inputs_of(call, NatsInputs)
        refuse_faults(check({**call.inputs, "auth": inputs.auth}, {}))
        with _as_tool_error(inputs):
            async with self._connections.connection(inputs, call.inputs.get("auth")) as connection:
                work = _perform(call, inputs, connection)
                return await connection.unless_denied(_subjects(inputs), work)


def _subjects(inputs: NatsInputs) -> tuple[str, ...]:
    """What the server calls that which a task asks it for, in parts of its messages."""
    if inputs.subject is not None:
        return (f'"{inputs.subject}"',)
    bucket = inputs.bucket
    keys = (f'.kv_{bucket}"', f".create.kv_{bucket}.", f'$kv.{bucket}.{inputs.key}"')
    objects = (f'.obj_{bucket}"', f".obj_{bucket}.", f'"$o.{bucket}.')
    return keys if inputs.action.startswith("kv_") else objects


async def _perform(call: Call, inputs: NatsInputs, connection: NatsConnection) -> Any:
    # The bound of the call ends what the client waits for: its own, of seconds, would be a second one.
    jetstream = connection.client.jetstream(timeout=call.timeout + 1)
    match inputs.action:
        case "publish":
            return await _publish(call, inputs, connection, jetstream)
        case "request":
            return await _request(call, inputs, connection.client)
        case "kv_get" | "kv_put" | "kv_delete" | "kv_keys":
            return await _use_keys(call, inputs, jetstream)
        case "object_put" | "object_get" | "object_delete" | "object_list":
            return await _use_objects(call, inputs, jetstream)
        case _:
            assert_never(inputs.action)


async def _publish(
    call: Call, inputs: NatsInputs, connection: NatsConnection, jetstream: JetStreamContext
) -> Json:
    subject, payload, headers = inputs.subject or "", _encode(inputs.payload), _headers(inputs)
    sent: dict[str, Json] = {"subject": subject, "bytes": len(payload)}
    if not (inputs.jetstream or inputs.stream):
        await connection.client.publish(subject, payload, headers=headers or None)
        await connection.flush()  # or nobody knows whether the server has it
        return sent
    # A retry has the same key, so that a stream does not store the message twice.
    headers.setdefault("Nats-Msg-Id", call.idempotency_key)
    stored = await jetstream.publish(subject, payload, stream=inputs.stream, headers=headers)
    return {**sent, "stream": stored.stream, "seq": stored.seq, "duplicate": bool(stored.duplicate)}


async def _request(call: Call, inputs: NatsInputs, client: Client) -> Json:
    headers = _headers(inputs) or None
    payload = _encode(inputs.payload)
    answer = await client.request(inputs.subject or "", payload, timeout=call.timeout + 1, headers=headers)
    return {
        "subject": inputs.subject,
        "headers": dict(answer.headers or {}),
        "data": await _decode(call, answer.data, inputs),
    }


async def _use_keys(call: Call, inputs: NatsInputs, jetstream: JetStreamContext) -> Json:
    bucket, key, revision = await jetstream.key_value(inputs.bucket or ""), inputs.key or "", inputs.revision
    match inputs.action:
        case "kv_get":
            entry = await bucket.get(key, revision=revision or None)
            value = await _decode(call, entry.value or b"", inputs)
            return {"key": key, "value": value, "revision": entry.revision}
        case "kv_put":
            data = _encode(inputs.value)
            if revision is None:
                return {"key": key, "revision": await bucket.put(key, data)}
            if revision == 0:
                return {"key": key, "revision": await bucket.create(key, data)}
            return {"key": key, "revision": await bucket.update(key, data, last=revision)}
        case "kv_delete":
            try:
                await bucket.get(key)
            except nats.js.errors.KeyNotFoundError:
                return {"key": key, "deleted": False}
            await bucket.delete(key, last=revision)
            return {"key": key, "deleted": True}
        case _:
            return [*sorted(await _matching_keys(bucket, inputs.key or ">"))]


async def _matching_keys(bucket: KeyValue, pattern: str) -> list[str]:
    """The client's own `keys` takes parts of names, not patterns, and asks for all keys to find them."""
    watcher = await bucket.watch(pattern, ignore_deletes=True, meta_only=True)
    try:
        keys = []
        async for entry in watcher:
            if entry is None:  # that was all there is now
                break
            keys.append(entry.key)
        return keys
    finally:
        await watcher.stop()  # type: ignore[no-untyped-call]  # of the client


async def _use_objects(call: Call, inputs: NatsInputs, jetstream: JetStreamContext) -> Json:
    bucket, key = await jetstream.object_store(inputs.bucket or ""), inputs.key or ""
    match inputs.action:
        case "object_put":
            put = ObjectInputs(
                action="put", url=key, content=inputs.content, source=inputs.source, format=inputs.format
            )
            async with open_put_source(call, put) as (path, media_type):
                headers = {"Content-Type": media_type}
                with path.open("rb") as file:
                    meta = ObjectMeta(name=key, headers=headers)
                    info = await bucket.put(key, file, meta=meta)
            return {"key": key, "size": info.size, "digest": info.digest}
        case "object_get":
            async with call.objects.draft() as draft:
                with draft.path.open("wb") as file:
                    await bucket.get(key, writeinto=file)
                if inputs.format not in (None, "bytes"):
                    return await read_value(call, draft.path, inputs.format)  # type: ignore[no-any-return]  # it is Json
                name = key.rpartition("/")[2]
                return await store_file(call, draft.path, media_type_by_suffix(name), name=name)
        case "object_delete":
            try:
                await bucket.get_info(key)
            except nats.js.errors.ObjectNotFoundError:
                return {"key": key, "deleted": False}
            await bucket.delete(key)
            return {"key": key, "deleted": True}
        case _:
            try:
                objects = await bucket.list(ignore_deletes=True)
            except nats.js.errors.NotFoundError:  # the client's word for a bucket with nothing in it
                return []
            return [_describe_object(info) for info in sorted(objects, key=lambda info: info.name)]


def _describe_object(info: ObjectInfo) -> dict[str, Json]:
    modified = datetime.fromisoformat(info.mtime) if info.mtime else None
    return {
        "key": info.name,
        "size": info.size,
        "digest": info.digest,
        "modified_at": modified.astimezone(UTC).isoformat(timespec="seconds") if modified else None,
    }


def _headers(inputs: NatsInputs) -> dict[str, str]:
    return {name: input_text(value) for name, value in (inputs.headers or {}).items()}


def _encode(value: Any) -> bytes:
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


async def _decode(call: Call, data: bytes, inputs: NatsInputs) -> Any:
    """What a message or a key holds: by `format`, else JSON if it is that, else text, else a reference."""
    if inputs.format != "bytes":
        try:
            text = data.decode()
            if inputs.format == "text":
                return text
            return msgspec.json.decode(data) if data else None
        except UnicodeDecodeError:
            if inputs.format is not None:
                raise ToolError("input", f"what came is no text: {len(data):,} bytes") from None
        except (msgspec.DecodeError, RecursionError):
            if inputs.format == "json":
                raise ToolError("input", "what came is no JSON") from None
            return text
    async with call.objects.draft() as draft:
        draft.path.write_bytes(data)
        return await draft.keep(MEDIA_TYPES["bytes"])


@contextmanager
def _as_tool_error(inputs: NatsInputs) -> Iterator[None]:
    try:
        yield
    except ToolError:
        raise
    except (nats.errors.Error, nats.js.errors.Error) as error:
        raise _tool_error(inputs, error) from None
    except (ConnectionError, OSError) as error:
        if isinstance(error, TimeoutError | FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise ToolError("connection", f"the server cannot be reached: {error}", retryable=True) from None


def _tool_error(inputs: NatsInputs, error: Exception) -> ToolError:
    entry = f"`{inputs.key}` in the bucket `{inputs.bucket}`"
    wrong_revision = isinstance(error, nats.js.errors.KeyWrongLastSequenceError)
    if wrong_revision or getattr(error, "err_code", None) == _WRONG_REVISION:
        message = f"{entry} has another revision than {inputs.revision}"
        return ToolError("input", message, details={"code": _WRONG_REVISION})
    match error:
        case nats.js.errors.BucketNotFoundError() | nats.js.errors.BadBucketError():
            return ToolError("not_found", f"there is no bucket `{inputs.bucket}`")
        case nats.js.errors.KeyNotFoundError() | nats.js.errors.ObjectNotFoundError():
            return ToolError("not_found", f"there is no {entry}")
        case nats.js.errors.InvalidKeyError() | nats.js.errors.InvalidObjectNameError():
            return ToolError("input", f"`{inputs.key}` cannot be the name of a key")
        case nats.js.errors.InvalidBucketNameError():
            return ToolError("input", f"`{inputs.bucket}` cannot be the name of a bucket")
        case nats.js.errors.NoStreamResponseError():
            return ToolError("not_found", f"no stream stores what is sent to `{inputs.subject}`")
        case nats.errors.NoRespondersError():
            return ToolError("not_found", f"nobody answers at `{inputs.subject}`", retryable=True)
        case nats.js.errors.ServiceUnavailableError():
            return ToolError(
                "connection", "the server has no JetStream, or none that is ready", retryable=True
            )
        case nats.errors.AuthorizationError() | nats.errors.InvalidUserCredentialsError():
            return ToolError("credential", "the server does not take the credential")
        case nats.errors.MaxPayloadError():
            return ToolError("limit", "the message is larger than the server takes")
        case nats.errors.BadSubjectError() | nats.errors.BadHeaderError():
            return ToolError("input", f"it cannot be sent: {error}")
        case nats.js.errors.APIError():
            details: dict[str, Json] = {"code": error.err_code}
            retryable = bool(error.code and error.code >= 500)
            return ToolError(
                "tool", f"the server refuses it: {error.description}", retryable=retryable, details=details
            )
        case _:
            message = str(error).removeprefix("nats: ") or type(error).__name__
            if "authorization" in message.lower():
                return ToolError("credential", "the server does not take the credential")
            return ToolError("connection", f"the server cannot be reached: {message}", retryable=True)
