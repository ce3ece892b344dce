from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Auth, Fault, Kind
from noetl.tools.host.input_rules import Action, Inputs, Scalar, at_most_one, check_action, literal_text

NatsAction = Literal[
    "publish",
    "request",
    "kv_get",
    "kv_put",
    "kv_delete",
    "kv_keys",
    "object_put",
    "object_get",
    "object_delete",
    "object_list",
]


class NatsInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message, or one operation on a bucket of JetStream."""

    action: Annotated[NatsAction, Meta(description="What to do.")]
    url: Annotated[
        str | None, Meta(description="The server, `nats://…` or `tls://…`, if `auth` does not say.")
    ] = None
    auth: Annotated[Auth | None, Meta(description="Keychain entry or stored credential to sign in with.")] = (
        None
    )
    subject: Annotated[str | None, Meta(description="Where `publish` and `request` send to.")] = None
    payload: Annotated[Any, Meta(description="What they send: text as it is, any other value as JSON.")] = (
        None
    )
    headers: Annotated[dict[str, Scalar] | None, Meta(description="Headers of the message.")] = None
    jetstream: Annotated[
        bool | None, Meta(description="Whether `publish` waits until a stream has stored it.")
    ] = None
    stream: Annotated[
        str | None, Meta(description="The stream that must store it; with this, `jetstream` is true.")
    ] = None
    bucket: Annotated[str | None, Meta(description="The bucket of keys, or of objects.")] = None
    key: Annotated[
        str | None, Meta(description="Key or name in it; for `kv_keys`, a pattern such as `orders.>`.")
    ] = None
    value: Annotated[
        Any, Meta(description="What `kv_put` writes: text as it is, any other value as JSON.")
    ] = None
    revision: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="For `kv_get`, which one. For `kv_put` and `kv_delete`, the last one: "
            "another makes it fail; 0 is a key that is not there."
        ),
    ] = None
    content: Annotated[Any, Meta(description="What `object_put` writes.")] = None
    source: Annotated[
        str | dict[str, Any] | None,
        Meta(description="File or reference that `object_put` writes, instead of `content`."),
    ] = None
    format: Annotated[
        Literal["json", "text", "bytes"] | None,
        Meta(
            description="How it is read. Default: messages and values that are JSON as such, others as "
            "text; `object_get` gives a reference."
        ),
    ] = None


ACTIONS = {
    "publish": Action(needs=(("subject",),), takes=("payload", "headers", "jetstream", "stream")),
    "request": Action(needs=(("subject",),), takes=("payload", "headers", "format")),
    "kv_get": Action(needs=(("bucket",), ("key",)), takes=("revision", "format")),
    "kv_put": Action(needs=(("bucket",), ("key",)), takes=("value", "revision")),
    "kv_delete": Action(needs=(("bucket",), ("key",)), takes=("revision",)),
    "kv_keys": Action(needs=(("bucket",),), takes=("key",)),
    "object_put": Action(needs=(("bucket",), ("key",), ("content", "source")), takes=("format",)),
    "object_get": Action(needs=(("bucket",), ("key",)), takes=("format",)),
    "object_delete": Action(needs=(("bucket",), ("key",))),
    "object_list": Action(needs=(("bucket",),)),
}

SCHEMES = ("nats://", "tls://", "ws://", "wss://")


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """What the action needs, and a way to a server."""
    yield from check_action(ACTIONS, inputs)
    if inputs.get("url") is None and inputs.get("auth") is None:
        yield Fault("`url` or `auth` is missing", hint="say where the server is")
    url = literal_text(inputs.get("url"))
    if url is not None and not url.startswith(SCHEMES):
        yield Fault(f"`{url}` is no address of a NATS server", key="url", hint="begin it with `nats://`")
    if inputs.get("jetstream") is False:
        yield from at_most_one(inputs, "jetstream", "stream", hint="a stream is part of JetStream")
    subject = literal_text(inputs.get("subject"))
    if subject is not None and (not subject or set(subject) & set(" \t\r\n*>")):
        hint = "it has no spaces, and no `*` or `>`"
        yield Fault(f"nothing can be sent to `{subject}`", key="subject", hint=hint)


EXAMPLE = """\
name: remember
kind: nats
url: nats://127.0.0.1:4222
action: kv_put
bucket: orders
key: last_id
value: 4711
"""

KIND = Kind(
    name="nats",
    summary="Publishes and requests messages, and keeps values and objects in JetStream.",
    result=(
        "`publish` gives `{subject, bytes}`, with JetStream `{stream, seq, duplicate}`, too; `request` "
        "`{subject, headers, data}`; `kv_get` `{key, value, revision}`; `kv_put` `{key, revision}`; "
        "`kv_keys` the keys; `object_get` a reference, with `format` the value; `object_put` "
        "`{key, size, digest}`; `object_list` `[{key, size, digest, modified_at}]`; deletes `{key, deleted}`."
    ),
    example=EXAMPLE,
    inputs=NatsInputs,
    spellings={"credential": "auth"},
    check=check,
    extra="nats",
    takes_references=frozenset({"content", "source", "args"}),
    reads=frozenset(),
    implementation="noetl.tools.nats.tool:NatsTool",
)
