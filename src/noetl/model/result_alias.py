"""Other names that playbooks in use have for keys of results: of an http answer, of a shell command."""

from collections.abc import Mapping

_NAMES = {
    "body": ("data", "elapsed_ms"),
    "status_code": ("status", "elapsed_ms"),
    "returncode": ("exit_code", "stdout"),
}
"""By other name: the key that is meant, and another that tells whose result it is."""


def other_name(owner: Mapping[str, object], key: object) -> str | None:
    """The key of a result that another name stands for, if the result has it; None for everything else.

    Asked only where the name itself is not there: a key of that name always wins.
    """
    meant = _NAMES.get(key) if isinstance(key, str) else None
    return meant[0] if meant is not None and meant[0] in owner and meant[1] in owner else None


class AliasedResult(dict[str, object]):
    """A result that answers to the other names, too; in all else the mapping that it is."""

    def __missing__(self, key: str) -> object:
        alias = other_name(self, key)
        if alias is None:
            raise KeyError(key)
        return self[alias]

    def get(self, key: str, default: object = None) -> object:
        return self[key] if key in self or other_name(self, key) is not None else default


def with_other_names(value: object) -> object:
    """The value; a result that has other names answers to them."""
    if type(value) is dict and any(other_name(value, name) is not None for name in _NAMES):
        return AliasedResult(value)
    return value
