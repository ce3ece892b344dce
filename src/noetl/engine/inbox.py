"""Commands from other processes to the owner of an execution, as they lie in its inbox."""

from typing import TypeAlias

import msgspec

from noetl.kernel.net.commands import (
    Cancel,
    CompleteStep,
    PatchCtx,
    Pause,
    Redrive,
    Resume,
    Retry,
    Signal,
    SkipStep,
)

RemoteCommand: TypeAlias = (
    Cancel | Pause | Resume | Signal | PatchCtx | CompleteStep | SkipStep | Redrive | Retry
)
"""What others may ask of a running execution."""

_KINDS: dict[str, type[RemoteCommand]] = {
    "cancel": Cancel,
    "pause": Pause,
    "resume": Resume,
    "signal": Signal,
    "ctx": PatchCtx,
    "complete": CompleteStep,
    "skip": SkipStep,
    "redrive": Redrive,
    "retry": Retry,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_command(command: RemoteCommand) -> bytes:
    return msgspec.json.encode({"do": _NAMES[type(command)], "with": command})


def decode_command(body: bytes) -> RemoteCommand | None:
    """None for what another release may have meant."""
    try:
        message = msgspec.json.decode(body)
        kind = _KINDS[message["do"]]
        return msgspec.convert(message["with"], kind)
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError):
        return None
