"""How `spec` blocks of several scopes become one (001 §6.4)."""

from collections.abc import Collection

from msgspec import inspect

from noetl.dsl.document.kinds import Kind, Kinds, TaskSpec
from noetl.dsl.document.shape_check import Field, fields_of
from noetl.dsl.document.source import Mapping, MappingEntry

NOT_INHERITED = frozenset(
    {"timeout", "mode", "max_in_flight", "reduce", "window", "entry_step", "final_step", "output", "lease"}
)
"""Keys that belong to the scope they stand in and are never inherited.

But for a `timeout` with the limits of requests: it is no limit of the scope itself.
"""

NOT_INHERITED_POLICY = frozenset({"admit", "join", "failure", "exec"})
"""The same for keys under `policy`."""


def inheritable_spec_fields(kinds: Kinds) -> dict[str, Field]:
    """The spec keys that a task of any kind would take from the scopes around it."""
    fields = dict(fields_of(TaskSpec))
    for kind in kinds:
        for key, field in fields_of(kind.spec).items():
            fields.setdefault(key, field)
    return {key: field for key, field in fields.items() if key not in NOT_INHERITED}


def merge_specs(*specs: Mapping | None) -> Mapping | None:
    """Later specs win: mappings merge deep, everything else is replaced. Positions stay."""
    merged: Mapping | None = None
    for spec in specs:
        if spec is not None:
            merged = spec if merged is None else _merge_pair(merged, spec)
    return merged


def takes_request_timeout(kind: Kind | None) -> bool:
    """Whether the `timeout` of tasks of this kind may be a mapping: the limits of requests, apart."""
    return kind is not None and _may_be_mapping(fields_of(kind.spec)["timeout"].type)


def _may_be_mapping(type_: inspect.Type) -> bool:
    if isinstance(type_, inspect.Metadata):
        return _may_be_mapping(type_.type)
    if isinstance(type_, inspect.UnionType):
        return any(map(_may_be_mapping, type_.types))
    return isinstance(type_, inspect.StructType)


def inheritable_spec(
    spec: Mapping | None, known: Collection[str] | None = None, *, request_timeout: bool = False
) -> Mapping | None:
    """The part of an outer spec that inner scopes see; of that, `known` keys only, if given.

    With `request_timeout`, they see the limits of requests, too.
    """
    if spec is None:
        return None
    inherited = {
        entry.key: entry
        for entry in spec
        if entry.key not in NOT_INHERITED and (known is None or entry.key in known or entry.key == "policy")
    }
    if request_timeout and isinstance(spec.get("timeout"), Mapping):
        inherited["timeout"] = spec.entries["timeout"]
    policy = spec.get("policy")
    if isinstance(policy, Mapping):
        inherited_policy = {entry.key: entry for entry in policy if entry.key not in NOT_INHERITED_POLICY}
        del inherited["policy"]
        if inherited_policy:
            inherited["policy"] = MappingEntry(
                "policy", Mapping(inherited_policy, policy.line, policy.column), policy.line, policy.column
            )
    return Mapping(inherited, spec.line, spec.column) if inherited else None


def _merge_pair(outer: Mapping, inner: Mapping) -> Mapping:
    entries = dict(outer.entries)
    for entry in inner:
        below = entries.get(entry.key)
        if below is not None and isinstance(below.value, Mapping) and isinstance(entry.value, Mapping):
            entries[entry.key] = MappingEntry(
                entry.key, _merge_pair(below.value, entry.value), entry.line, entry.column
            )
        else:
            entries[entry.key] = entry
    return Mapping(entries, inner.line, inner.column)
