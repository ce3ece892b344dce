"""The contract that the kinds for stored objects share."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Auth, Fault
from noetl.tools.host.input_rules import Action, Format, Inputs, check_action, literal_text


class ObjectInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation on an object, or on all below an address."""

    action: Annotated[Literal["get", "put", "list", "copy", "delete"], Meta(description="What to do.")]
    url: Annotated[str, Meta(description="Address of the object; for `list`, how the addresses begin.")]
    to: Annotated[str | None, Meta(description="Address that `copy` writes to.")] = None
    content: Annotated[Any, Meta(description="What `put` writes.")] = None
    source: Annotated[
        str | dict[str, Any] | None,
        Meta(description="File or reference that `put` writes, instead of `content`."),
    ] = None
    format: Annotated[
        Format | None,
        Meta(
            description="How it is written or read. Default: `put` goes by the address, "
            "`get` gives a reference."
        ),
    ] = None
    auth: Annotated[Auth | None, Meta(description="Keychain entry or stored credential to sign in with.")] = (
        None
    )


RESULT = (
    "`get` gives a reference, with `format` the value; `list` `[{url, size, …}]`; "
    "`put` and `copy` `{url, size, …}`; `delete` `{url, deleted}`."
)

ACTIONS = {
    "get": Action(takes=("format",)),
    "put": Action(needs=(("content", "source"),), takes=("format",)),
    "list": Action(),
    "copy": Action(needs=(("to",),)),
    "delete": Action(),
}


def check_object_inputs(inputs: Inputs, fits: Callable[[str], bool], hint: str) -> Iterator[Fault]:
    """What the action needs, at addresses that fit; `hint` says how those look."""
    yield from check_action(ACTIONS, inputs)
    for key in ("url", "to"):
        address = literal_text(inputs.get(key))
        if address is not None and not fits(address):
            yield Fault(f"`{address}` is no address for this kind", key=key, hint=hint)
