"""The one truthiness of guards."""

_FALSE = frozenset({"", "0", "false", "no", "none"})
"""Text that does not count as true in a guard, in lower case and without blanks around it."""


def truthy(value: object) -> bool:
    """Whether a guard with this value holds: the one truthiness of guards."""
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE
    return bool(value)
