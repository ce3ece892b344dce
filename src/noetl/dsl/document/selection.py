"""Parts of results that a playbook names by JSONPath (RFC 9535)."""

from typing import Any

from noetl.model.json import Json


class Selection:
    """One path of `spec.result.select`, and the name under which what it finds is kept.

    Raises ValueError if it is no path.
    """

    __slots__ = ("_query", "name")

    def __init__(self, path: str, name: str = "") -> None:
        import jsonpath_rfc9535  # noqa: PLC0415 - slower to import than a command takes, and rarely used

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

    def find_locations(self, value: Json) -> set[tuple[str | int, ...]]:
        """Where it finds something."""
        return {tuple(node.location) for node in self._query.find(value)}

    def find_in_chunk(self, values: list[Any], start: int, total: int) -> list[Any]:
        """What it finds in a part of a list of `total` elements, from `start` on: all parts give it all.

        That goes for paths that begin with `[*]` or `[N]`; others find nothing there.
        """
        from jsonpath_rfc9535 import segments  # noqa: PLC0415 - imported already
        from jsonpath_rfc9535 import selectors as by  # noqa: PLC0415 - imported already

        first = self._query.segments[0] if self._query.segments else None
        selectors = first.selectors if isinstance(first, segments.JSONPathChildSegment) else ()
        if len(selectors) != 1:
            return []
        if isinstance(selectors[0], by.WildcardSelector):
            return list(self._query.find(values).values())
        if not isinstance(selectors[0], by.IndexSelector):
            return []
        index = selectors[0].index
        at = index if index >= 0 else total + index
        if not start <= at < start + len(values):
            return []
        # The path's index counts in the list as a whole, so the chunk is put where it belongs in it.
        padded = [None] * start + values + [None] * (total - start - len(values))
        return list(self._query.find(padded).values())

    @property
    def singular(self) -> bool:
        """Whether it can find one value at most."""
        return self._query.singular_query()


def _last_name(path: str) -> str:
    """`total` of `$.data.total`."""
    return path.rstrip("]'\"").replace("[", ".").rpartition(".")[2].strip("'\"") or path
