"""Commands from other processes to the owner of an execution, as they lie in its inbox."""

from typing import TypeAlias

import msgspec

from noetl.kernel.net.commands import Cancel, PatchCtx, Pause, Resume, Signal

Order: TypeAlias = Cancel | Pause | Resume | Signal | PatchCtx
"""What others may ask of a running execution."""

_KINDS: dict[str, type[Order]] = {
    "cancel": Cancel,
    "pause": Pause,
    "resume": Resume,
    "signal": Signal,
    "ctx": PatchCtx,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write_letter(order: Order) -> bytes:
    return msgspec.json.encode({"do": _NAMES[type(order)], "with": order})


def read_letter(body: bytes) -> Order | None:
    """None for what another release may have meant."""
    try:
        letter = msgspec.json.decode(body)
        kind = _KINDS[letter["do"]]
        return msgspec.convert(letter["with"], kind)
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError):
        return None
