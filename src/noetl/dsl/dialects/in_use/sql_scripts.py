"""SQL that is kept elsewhere: a task that reads it, before the one that runs it."""

import re

from noetl.dsl.dialects.expression_text import as_template
from noetl.dsl.dialects.in_use.recognition import entries_of
from noetl.dsl.dialects.nodes import NodeReader, new_entry, new_mapping, new_text, text_value, without_keys
from noetl.dsl.document.shape_check import ProblemReporter, describe_node
from noetl.dsl.document.source import Mapping, MappingEntry, Node, node_of

_SCRIPT_KEYS = ["uri", "source"]
_SOURCE_KEYS = ["type", "code", "endpoint", "bucket", "region", "method", "headers", "timeout", "auth"]
_KIND_BY_SCHEME = {"http": "http", "https": "http", "s3": "s3", "gs": "gcs", "gcs": "gcs"}
_SCHEME = re.compile(r"([a-z][a-z0-9]*)://")
_IN_CREDENTIAL = ("endpoint", "region")


class SqlScript:
    """The script of one task, whose `script` is a text or `{uri, source}`."""

    def __init__(self, task: Mapping, label: str, report: ProblemReporter) -> None:
        self._task = task
        self._name = f"{label}__script"
        self._label = label
        self._report = report
        self._entry = task.entries["script"]
        script = self._entry.value
        self._fields = (
            script if isinstance(script, Mapping) else new_mapping([new_entry("uri", script)], script)
        )
        source = self._fields.get("source")
        self._source = source if isinstance(source, Mapping) else new_mapping([], self._fields)

    def expand(self) -> list[tuple[str, Mapping]] | None:
        """The two tasks, or one where the SQL is at hand; None if it says no place, which is reported."""
        reader = NodeReader(self._report)
        reader.check_keys(self._fields, _SCRIPT_KEYS, "`script`")
        reader.check_keys(self._source, _SOURCE_KEYS, "`source`")
        uri = self._fields.entries.get("uri") or self._source.entries.get("endpoint")
        address = text_value(uri.value) if uri is not None else None
        scheme = _SCHEME.match(address or "")
        own_kind = self._source.get("type")
        kind = text_value(own_kind) or _KIND_BY_SCHEME.get(scheme[1] if scheme else "", "file")
        code = self._source.entries.get("code")
        if kind == "inline" and code is not None:
            return [(self._label, self._with_command(code.value))]
        if uri is None or address is None:
            message = "the script of an SQL task needs `uri`"
            hint = "say where it is, for example `./report.sql`"
            self._report("missing-key", self._entry.value, message, hint)
            return None
        match kind:
            case "file" | "http":
                read = self._read_from(kind, uri)
            case "s3" | "gcs":
                read = self._read_from_bucket(uri, "s3" if kind == "s3" else "gs")
            case _:
                at = own_kind or self._entry.value
                message = f"SQL cannot be read from {describe_node(at)}"
                hint = "one of `file`, `http`, `s3`, `gcs`, `inline`; or write it under `command`"
                self._report("in-use-inexpressible", at, message, hint)
                return None
        if (timeout := self._source.entries.get("timeout")) is not None:
            read.append(new_entry("spec", new_mapping([timeout], timeout), timeout))
        text = as_template(f"{self._name}.data" if kind == "http" else self._name)
        return [
            (self._name, new_mapping(read, self._entry)),
            (self._label, self._with_command(new_text(text, self._entry))),
        ]

    def _with_command(self, text: Node) -> Mapping:
        entry = new_entry("command", text, self._entry)
        return new_mapping([*without_keys(self._task, "script"), entry], self._task)

    def _read_from(self, kind: str, uri: MappingEntry) -> list[MappingEntry]:
        if kind == "file":
            how = node_of({"kind": "file", "action": "get", "format": "text"}, self._entry)
            return [*entries_of(how), new_entry("url", uri.value, uri)]
        address = self._source.entries.get("endpoint") or uri
        passed_on = [part for part in self._source if part.key in ("method", "headers", "auth")]
        kind_entry = new_entry("kind", node_of("http", self._entry))
        return [kind_entry, new_entry("url", address.value, address), *passed_on]

    def _read_from_bucket(self, uri: MappingEntry, scheme: str) -> list[MappingEntry]:
        address = text_value(uri.value) or ""
        bucket = text_value(self._source.get("bucket"))
        if _SCHEME.match(address):
            url = f"{scheme}://{address.partition('://')[2]}"
        else:
            url = f"{scheme}://{bucket}/{address}" if bucket is not None else address
        how = node_of({"kind": "s3", "action": "get", "format": "text"}, self._entry)
        read = [*entries_of(how), new_entry("url", new_text(url, uri.value), uri)]
        auth = self._source.entries.get("auth")
        location = [part for part in self._source if part.key in _IN_CREDENTIAL]
        if not location:
            return read if auth is None else [*read, auth]
        if auth is not None and not isinstance(auth.value, Mapping):
            message = f"`{location[0].key}` cannot stand beside the name of a credential"
            self._report("in-use-inexpressible", location[0], message, "put it into that credential")
            return [*read, auth]
        at = auth or location[0]
        merged = new_mapping([*location, *entries_of(auth.value if auth is not None else None)], at)
        return [*read, new_entry("auth", merged, at)]
