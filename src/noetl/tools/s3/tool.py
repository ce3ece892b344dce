"""Runs the kind `s3`: objects in S3, and in Google Cloud Storage."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import GCSStore, S3Store

from noetl.model.json import Json
from noetl.model.outcome import Outcome, ToolError
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import inputs_of
from noetl.tools.objects.content import media_type_by_suffix
from noetl.tools.objects.operation import open_put_source, read_value, run_operation, store_file
from noetl.tools.s3.gcs_client import gcs_client_config, gcs_credential_error, open_gcs_store
from noetl.tools.s3.kind import S3Inputs, check

ObjectStore: TypeAlias = S3Store | GCSStore

PART = 8 << 20
"""Bytes of one part of an upload, and of one piece of a download."""
PARTS_AT_ONCE = 4
MAX_LISTED = 100_000

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_INSTANCE_METADATA = re.compile(r"://[^/ ]+/latest/(api/token|meta-data/)")
"""Where a machine of Amazon's finds its own credential, which is asked for when there is no other."""

_SPELLINGS = {
    "access_key_id": ("access_key_id", "aws_access_key_id", "access_key", "key_id"),
    "secret_access_key": ("secret_access_key", "aws_secret_access_key", "secret_key", "secret"),
    "session_token": ("session_token", "aws_session_token", "token"),
    "region": ("region", "aws_region", "region_name", "aws_default_region", "default_region"),
    "endpoint": ("endpoint", "endpoint_url", "aws_endpoint_url", "aws_endpoint"),
}


class ObjectAddress(NamedTuple):
    scheme: str
    """`s3`, or `gs` for Google Cloud Storage."""
    bucket: str
    name: str

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.name}"


class S3Tool:
    """Objects in buckets, streamed both ways."""

    async def run(self, call: Call) -> Outcome:
        return await run_operation(call, _run_action)

    async def close(self) -> None:
        """Nothing is held: a client lives as long as its call."""


async def _run_action(call: Call) -> Any:
    inputs = inputs_of(call, S3Inputs)
    for fault in check({**call.inputs, "auth": None}, {}):
        raise ToolError("input", fault.message)
    address = _parse_address(inputs.url, needs_name=inputs.action != "list")
    config = _client_config(address, call.inputs.get("auth"))
    with _as_tool_error(address, config):
        store = _open_store(address, config)
        match inputs.action:
            case "get":
                return await _get(call, inputs, store, address)
            case "put":
                async with open_put_source(call, inputs) as (path, media_type):
                    return await _put(store, address, path, media_type)
            case "copy":
                return await _copy(call, store, config, address, _parse_address(inputs.to or ""))
            case "delete":
                return await _delete(store, address)
            case "list":
                return await _list(store, address)


async def _get(call: Call, inputs: S3Inputs, store: ObjectStore, address: ObjectAddress) -> Any:
    async with call.objects.draft() as draft:
        await _download(store, address.name, draft.path)
        if inputs.format not in (None, "bytes"):
            return await read_value(call, draft.path, inputs.format)
        name = address.name.rpartition("/")[2]
        return await store_file(call, draft.path, media_type_by_suffix(name), name=name, url=address.url)


async def _put(store: ObjectStore, address: ObjectAddress, path: Path, media_type: str) -> Json:
    size = path.stat().st_size
    stored = await obstore.put_async(
        store,
        address.name,
        path,
        attributes={"Content-Type": media_type},
        chunk_size=PART,
        max_concurrency=PARTS_AT_ONCE,
    )
    return {"url": address.url, "size": size, "etag": _etag(stored["e_tag"]), "media_type": media_type}


async def _copy(
    call: Call, store: ObjectStore, config: dict[str, Any], address: ObjectAddress, target: ObjectAddress
) -> Json:
    if target.scheme != address.scheme:
        raise ToolError(
            "input", f"`{address.url}` cannot be copied to `{target.url}`: `get` it, then `put` it"
        )
    if target.bucket == address.bucket:
        await obstore.copy_async(store, address.name, target.name)
        size = (await obstore.head_async(store, target.name))["size"]
        return {"url": target.url, "size": size}
    async with call.objects.draft() as draft:
        await _download(store, address.name, draft.path)
        return await _put(_open_store(target, config), target, draft.path, media_type_by_suffix(target.name))


async def _delete(store: ObjectStore, address: ObjectAddress) -> Json:
    try:
        await obstore.head_async(store, address.name)
    except FileNotFoundError:
        return {"url": address.url, "deleted": False}
    await obstore.delete_async(store, address.name)
    return {"url": address.url, "deleted": True}


async def _list(store: ObjectStore, address: ObjectAddress) -> Json:
    objects: list[Json] = []
    # The client lists by whole folders: what begins with the rest of the name is chosen here.
    folder, _, _ = address.name.rpartition("/")
    async for page in obstore.list(store, prefix=folder or None):
        for meta in page:
            if not meta["path"].startswith(address.name):
                continue
            modified_at = meta["last_modified"].astimezone(UTC).isoformat(timespec="seconds")
            objects.append(
                {
                    "url": address._replace(name=meta["path"]).url,
                    "name": meta["path"].rpartition("/")[2],
                    "size": meta["size"],
                    "modified_at": modified_at,
                    "etag": _etag(meta["e_tag"]),
                }
            )
        if len(objects) > MAX_LISTED:
            raise ToolError("limit", f"more than {MAX_LISTED:,} objects begin with `{address.url}`")
    return sorted(objects, key=lambda item: str(item["url"]) if isinstance(item, dict) else "")


async def _download(store: ObjectStore, name: str, target: Path) -> None:
    response = await obstore.get_async(store, name)
    with target.open("wb") as file:
        async for piece in response.stream(min_chunk_size=PART):
            file.write(piece)


def _etag(text: str | None) -> str | None:
    return text.strip('"') if text else None


def _parse_address(url: str, *, needs_name: bool = True) -> ObjectAddress:
    scheme, _, rest = url.partition("://")
    bucket, _, name = rest.partition("/")
    if scheme not in ("s3", "gs") or not bucket or (needs_name and not name.strip("/")):
        raise ToolError("input", f"`{url}` names no object: s3://BUCKET/NAME or gs://BUCKET/NAME")
    if not _BUCKET.fullmatch(bucket):
        raise ToolError("input", f"`{bucket}` cannot be the name of a bucket")
    if needs_name and (name.startswith("/") or name.endswith("/")):
        raise ToolError("input", f"`{url}` names no object: its name begins or ends with `/`")
    return ObjectAddress(scheme, bucket, name)


def _client_config(address: ObjectAddress, auth: Any) -> dict[str, Any]:
    return gcs_client_config(auth) if address.scheme == "gs" else s3_client_config(auth)


def s3_client_config(auth: Any) -> dict[str, Any]:
    """What a credential says, in the words of the client; empty: the environment says it."""
    if auth is None:
        return {}
    if not isinstance(auth, Mapping):
        raise ToolError("credential", f"the credential `{auth}` is not there")
    config = {
        name: str(auth[key])
        for name, keys in _SPELLINGS.items()
        for key in keys
        if auth.get(key) not in (None, "")
    }
    if ("access_key_id" in config) != ("secret_access_key" in config):
        raise ToolError("credential", "the credential needs `access_key_id` and `secret_access_key`, both")
    if not config.keys() & {"access_key_id", "endpoint", "region"}:
        raise ToolError("credential", "the credential has nothing to sign in to S3 with: `access_key_id`")
    for name, value in config.items():
        # The client panics on these.
        if not value.isprintable() or " " in value:
            raise ToolError("credential", f"there is a space or a line break in the credential's `{name}`")
    if not re.match(r"https?://[^/]", config.get("endpoint", "http://default")):
        raise ToolError(
            "credential", "the credential's `endpoint` does not begin with `http://` or `https://`"
        )
    return config


def _open_store(address: ObjectAddress, config: dict[str, Any]) -> ObjectStore:
    if address.scheme == "gs":
        return open_gcs_store(address.bucket, config)
    if "endpoint" in config:
        config = {"region": "us-east-1", **config}
    return S3Store(
        address.bucket,
        config=config,  # type: ignore[arg-type]  # a mapping of known keys
        # Whether it is encrypted is what the endpoint says; that of Amazon is.
        client_options={"allow_http": True, "timeout": "3600s", "connect_timeout": "10s"},
        # Retries are the engine's: an attempt that tried again by itself could not be counted or bounded.
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=1)},
    )


@contextmanager
def _as_tool_error(address: ObjectAddress, config: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if error.filename is not None:
            raise  # a file here
        message = (
            f"there is no bucket `{address.bucket}`"
            if "NoSuchBucket" in str(error)
            else f"there is no {address.url}"
        )
        raise ToolError("not_found", message) from None
    except (PermissionDeniedError, UnauthenticatedError):
        raise ToolError("permission", f"the credential does not allow this on {address.url}") from None
    except BaseError as error:
        message = str(error).strip("'\" \n")
        raise gcs_credential_error(message, config) or _client_error(address, message) from None
    except ValueError as error:
        raise ToolError("input", f"`{address.url}` names no object: {error}") from None
    except Exception as error:  # the client's own panic, a class that cannot be imported
        if type(error).__name__ != "RustPanic":
            raise
        raise ToolError("credential", "the environment does not say where S3 is: see AWS_ENDPOINT") from None


def _client_error(address: ObjectAddress, message: str) -> ToolError:
    if "NoSuchBucket" in message:
        return ToolError("not_found", f"there is no bucket `{address.bucket}`")
    if message.startswith("Generic S3 error: Missing") or _INSTANCE_METADATA.search(message):
        hint = "give `auth`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        return ToolError("credential", f"there is nothing to sign in to S3 with: {hint}")
    if " 403 " in message or " 401 " in message:
        return ToolError("permission", f"the credential does not allow this on {address.url}")
    return ToolError("connection", f"{address.url}: {message.partition(chr(10))[0]}", retryable=True)
