"""Keychains in use: entries for several secrets, stored credentials by another name, token requests."""

import re

from noetl.dsl.dialects.expression_text import as_template, member_expression
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of
from noetl.dsl.dialects.nodes import new_entry, new_mapping, new_sequence, new_text, text_value, without_keys
from noetl.dsl.document.shape_check import ProblemReporter, describe_node
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Sequence, node_of
from noetl.expr.expression import parse
from noetl.expr.language.guard import is_template
from noetl.model.errors import ExpressionError

_SECRET_PATH = re.compile(
    r"projects/(?P<project>[^/]+)/secrets/(?P<secret>[^/]+)(?:/versions/(?P<version>[^/]+))?/?\Z"
)
_OAUTH_DATA = ("client_id", "client_secret", "scope", "audience")


class KeychainLowering:
    """Lowers the keychain of one document. `fields` are the entries that became one for each field."""

    def __init__(self, report: ProblemReporter) -> None:
        self._report = report
        self.fields: dict[str, dict[str, str]] = {}

    def lower(self, node: Node, document: Mapping) -> Node:
        """The keychain of a document, which is asked who uses entries as one."""
        entries: list[Node] = []
        for item in items_of(node):
            entries += self._entry(item) if isinstance(item, Mapping) else [item]
            name = text_value(item.get("name")) if isinstance(item, Mapping) else None
            if name in self.fields and any(name in names_in_one(entry.value) for entry in document):
                entries.append(self._collected(name or "", item))
        return new_sequence(entries, node)

    def _collected(self, name: str, at: Node) -> Mapping:
        """An entry for those who use all fields at once: as `auth`, or `keychain.NAME` as a mapping."""
        data = {
            field: as_template(f"{member_expression('keychain', entry)}.value")
            for field, entry in self.fields[name].items()
        }
        entries = [new_entry(key, new_text(text, at)) for key, text in (("name", name), ("kind", "static"))]
        fields = [new_entry(field, new_text(text, at)) for field, text in data.items()]
        return new_mapping([*entries, new_entry("data", new_mapping(fields, at))], at)

    def _entry(self, item: Mapping) -> list[Mapping]:
        match text_value(item.get("kind")):
            case "secrets":
                return self._secrets(item)
            case "google_oauth":
                return [_stored(item)]
            case "oauth2" if "endpoint" in item:
                return [self._oauth2(item)]
            case _:
                return [item]

    def _secrets(self, item: Mapping) -> list[Mapping]:
        """One entry for each field; `keychain.NAME.FIELD` is read from it."""
        name, fields = text_value(item.get("name")), item.get("map")
        if name is None or not isinstance(fields, Mapping) or not fields.entries:
            message = "a keychain entry of kind `secrets` needs `name` and `map`"
            self._report("missing-key", item, message, "`map` says where each field is kept")
            return []
        provider = text_value(item.get("provider"))
        shared = [entry for entry in item if entry.key == "desc"]
        if (auth := item.entries.get("auth")) is not None:
            message = "`auth` has no effect: the machine's own account reads the secrets"
            self._report("no-effect", auth, message, "remove it")
        if provider is not None:
            name_of = {"google": "gcp", "google_secret_manager": "gcp", "aws_secrets_manager": "aws"}
            entry = item.entries["provider"]
            shared.append(
                new_entry("provider", new_text(name_of.get(provider, provider), entry.value), entry)
            )
        self.fields[name] = {field.key: f"{name}__{field.key}" for field in fields}
        return [
            new_mapping(
                [
                    new_entry("name", new_text(self.fields[name][field.key], field)),
                    new_entry("kind", new_text("secret_manager", item.entries["kind"].value)),
                    *shared,
                    *_secret_path(field),
                ],
                field,
            )
            for field in fields
        ]

    def _oauth2(self, item: Mapping) -> Mapping:
        """A request for a token, taken apart."""
        endpoint = item.entries["endpoint"]
        method = item.entries.get("method")
        if method is not None and (text_value(method.value) or "").upper() != "POST":
            message = f"tokens are asked for with POST, not {describe_node(method.value)}"
            self._report("in-use-inexpressible", method.value, message, "remove `method`")
        data = item.entries.get("data")
        known: list[MappingEntry] = []
        for field in entries_of(data.value if data is not None else None):
            if field.key in _OAUTH_DATA:
                known.append(field)
            elif field.key != "grant_type" or text_value(field.value) != "client_credentials":
                message = f"`{field.key}` cannot be sent when a token is asked for"
                hint = f"what is sent: {', '.join(_OAUTH_DATA)}, and `grant_type: client_credentials`"
                self._report("in-use-inexpressible", field, message, hint)
        remaining = without_keys(item, "endpoint", "method", "headers", "data")
        return new_mapping(
            [
                *remaining,
                new_entry("token_url", endpoint.value, endpoint),
                *known,
                new_entry("client_auth", node_of("body", endpoint)),
            ],
            item,
        )


def names_in_one(node: Node) -> set[str]:
    """The keychain entries that a part of a document uses as one mapping."""
    if isinstance(node, Sequence):
        return set().union(*(names_in_one(item) for item in node.items))
    if isinstance(node, Mapping):
        named = {text_value(entry.value) for entry in node if entry.key in ("auth", "credential")}
        inner = set().union(*(names_in_one(entry.value) for entry in node))
        return inner | {name for name in named if name is not None}
    if not isinstance(node.value, str) or "keychain" not in node.value or not is_template(node.value):
        return set()
    try:
        uses = parse(node.value).uses
    except ExpressionError:
        return set()
    return {use.path[1] for use in uses if use.path[0] == "keychain" and len(use.path) == 2}


def _stored(item: Mapping) -> Mapping:
    """A stored credential, which may have another name there."""
    kind, reference = item.entries["kind"], item.entries.get("ref")
    entries = [entry for entry in item if entry.key in ("name", "desc")]
    entries.append(new_entry("kind", new_text("credential", kind.value), kind))
    if reference is not None:
        entries.append(new_entry("credential", reference.value, reference))
    return new_mapping(entries, item)


def _secret_path(field: MappingEntry) -> list[MappingEntry]:
    """`projects/P/secrets/S/versions/V` in its parts; anything else is the name of the secret."""
    text = text_value(field.value) or ""
    match = _SECRET_PATH.match(text)
    if match is None:
        return [new_entry("secret", field.value, field)]
    parts = {key: value for key, value in match.groupdict().items() if value and value != "latest"}
    return [new_entry(key, new_text(value, field.value), field) for key, value in parts.items()]
