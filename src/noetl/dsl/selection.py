"""Parts of results that a playbook names by JSONPath (RFC 9535)."""

from typing import Any

from noetl.model import Json


class Selection:
    """One path of `spec.result.select`, and the name under which what it finds is kept.

    Raises ValueError if it is no path.
    """

    __slots__ = ("_query", "name")

    def __init__(self, path: str, name: str = "") -> None:
        # Imported here: that takes longer than the rest of a command, and few playbooks select anything.
        import jsonpath_rfc9535  # noqa: PLC0415

        self.name = name or _last_name(path)
        try:
            self._query = jsonpath_rfc9535.compile(path if path.startswith("$") else f"$.{path}")
        except jsonpath_rfc9535.JSONPathError as error:
            raise ValueError(f"`{path}` is not a JSONPath: {str(error).splitlines()[0]}") from None

    def find(self, value: Json) -> dict[str, Any]:
        """What it finds, by name: one value, nothing, or the list of all where there may be several."""
        values = self._query.find(value).values()
        if self._query.singular_query():
            return {self.name: values[0]} if values else {}
        return {self.name: values}


def _last_name(path: str) -> str:
    """`total` of `$.data.total`."""
    return path.rstrip("]'\"").replace("[", ".").rpartition(".")[2].strip("'\"") or path
