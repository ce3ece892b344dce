"""Tasks in use that are others here: `transfer`, `agent`, `ducklake`, and SQL that is kept in a file."""

from noetl.dsl.dialects.in_use.in_use_tasks import listed_items
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of
from noetl.dsl.dialects.in_use.sql_scripts import SqlScript
from noetl.dsl.dialects.in_use.survey import SQL_KINDS
from noetl.dsl.dialects.nodes import (
    NodeReader,
    new_entry,
    new_mapping,
    new_sequence,
    new_text,
    text_value,
    without_keys,
)
from noetl.dsl.document.shape_check import ProblemReporter, closest_words, describe_node
from noetl.dsl.document.source import Mapping, MappingEntry, Node, node_of

_RENAME = """\
result = [{target: row[source] for target, source in mapping.items()} for row in rows]
"""
_TRANSFER_KEYS = [
    *("name", "kind", "desc", "source", "target", "mode", "mapping", "input", "set", "spec", "retry"),
    *("timeout", "timeout_seconds"),
]
_AGENT_KEYS = frozenset({"framework", "entrypoint", "payload", "input", "args", "kind"})
_LAKE_KEYS = frozenset({"catalog", "catalog_connection", "catalog_name", "data_path", "kind"})


def composite_definitions(workbook: Node | None) -> dict[str, Mapping]:
    """The definitions of a workbook that stand for several tasks, by name: each is put where it is used."""
    tasks = workbook.get("tasks") if isinstance(workbook, Mapping) else workbook
    if isinstance(tasks, Mapping):
        named: list[tuple[str | None, Node]] = [(entry.key, entry.value) for entry in tasks]
    else:
        named = [
            (text_value(item.get("name")), item) for item in items_of(tasks) if isinstance(item, Mapping)
        ]
    return {
        name: definition
        for name, definition in named
        if name is not None and isinstance(definition, Mapping) and _is_composite(definition)
    }


def _is_composite(task: Mapping) -> bool:
    kind = text_value(task.get("kind"))
    return kind == "transfer" or (kind in SQL_KINDS and "script" in task)


def expand_task(
    task: Mapping, label: str, definitions: dict[str, Mapping], report: ProblemReporter
) -> list[tuple[str, Mapping]]:
    """The tasks with their labels that a task stands for; the last of them has its label.

    `definitions` are those of the workbook that stand for several.
    """
    match text_value(task.get("kind")):
        case "workbook" if (used := definitions.get(text_value(task.get("task")) or label)) is not None:
            return expand_task(_merged(used, task), label, {}, report)
        case "transfer":
            return _transfer(task, label, report)
        case "agent":
            return [(label, _agent(task, report))]
        case "ducklake":
            return [(label, _ducklake(task, report))]
        case kind if kind in SQL_KINDS and "script" in task:
            return SqlScript(task, label, report).expand() or [(label, _noop(task))]
        case _:
            return [(label, task)]


def _merged(definition: Mapping, task: Mapping) -> Mapping:
    """A definition where it is used: what the task says itself wins, its inputs one by one."""
    own = without_keys(task, "kind", "task")
    merged = new_mapping([*definition, *own], task)
    for key in ("input", "args"):
        if isinstance(definition.get(key), Mapping) and isinstance(own.get(key), Mapping):
            inputs = new_mapping([*entries_of(definition.get(key)), *entries_of(own.get(key))], own)
            merged = new_mapping([*merged, new_entry(key, inputs, own.entries[key])], merged)
    return merged


def _transfer(task: Mapping, label: str, report: ProblemReporter) -> list[tuple[str, Mapping]]:
    """Read, rename, write."""
    NodeReader(report).check_keys(task, _TRANSFER_KEYS, "a `transfer`")
    source, target = task.get("source"), task.get("target")
    if not isinstance(source, Mapping) or not isinstance(target, Mapping):
        message = "a `transfer` needs the mappings `source` and `target`"
        report("missing-key", task, message, "each has `kind`, `auth`, and `query` or `table`")
        return [(label, _noop(task))]
    table = text_value(target.get("table")) or text_value(target.get("into"))
    mode = task.entries.get("mode")
    mode_name = text_value(mode.value) if mode is not None else "append"
    if mode is not None and mode_name not in ("append", "replace"):
        message = f"the mode of a `transfer` cannot be {describe_node(mode.value)}"
        report(
            "in-use-inexpressible",
            mode.value,
            message,
            "one of `append`, `replace`; or write the SQL yourself",
        )
    if table is None:
        report("missing-key", target, "the target of a `transfer` needs `table`", "name the table")
        return [(label, _noop(task))]
    shared = [entry for entry in task if entry.key == "input"]
    read = _side(source, task, "source")
    if text_value(read.get("kind")) not in SQL_KINDS:
        message = f"a `transfer` cannot read from {describe_node(read.entries['kind'].value)}"
        report("in-use-inexpressible", read.entries["kind"].value, message, "read it in a task of its own")
        return [(label, _noop(task))]
    tasks = [(f"{label}__read", new_mapping([*read, *shared], read))]
    rows = "{{ _prev.rows }}"
    mapping = task.entries.get("mapping")
    if mapping is not None and not isinstance(mapping.value, Mapping):
        message = f"`mapping` must be a mapping, not {describe_node(mapping.value)}"
        report("wrong-type", mapping.value, message, "`target column: source column`")
    elif mapping is not None:
        args = [new_entry("rows", new_text(rows, mapping)), new_entry("mapping", mapping.value, mapping)]
        rename = [
            new_entry("kind", node_of("python", mapping)),
            new_entry("args", new_mapping(args, mapping)),
            new_entry("code", node_of(_RENAME, mapping)),
        ]
        tasks.append((f"{label}__rename", new_mapping(rename, mapping)))
        rows = "{{ _prev }}"
    side = without_keys(_side(target, task, "target"), "table", "into", "query", "command")
    side = new_mapping([*side, *shared], side)
    write = [*side, new_entry("into", new_text(table, target)), new_entry("rows", new_text(rows, target))]
    if mode_name == "replace":
        emptied = "DELETE FROM" if text_value(side.get("kind")) == "sqlite" else "TRUNCATE"
        command = new_entry("command", new_text(f"{emptied} {table}", target))
        truncate = new_mapping([*side, command], target)
        rows_label = tasks[-1][0]
        write[-1] = new_entry(
            "rows", new_text("{{ " + rows_label + (".rows" if mapping is None else "") + " }}", target)
        )
        tasks.append((f"{label}__truncate", truncate))
    beside = ("spec", "set", "retry", "desc", "timeout", "timeout_seconds")
    rest = [entry for entry in task if entry.key in beside]
    return [*tasks, (label, new_mapping([*write, *rest], task))]


def _side(side: Mapping, task: Mapping, key: str) -> Mapping:
    """The inputs of the task that reads or writes."""
    kind = side.entries.get("kind") or side.entries.get("type")
    entries = [entry for entry in side if entry.key not in ("kind", "type")]
    at = kind or task.entries[key]
    value = kind.value if kind is not None else node_of("postgres", at)
    return new_mapping([new_entry("kind", value, at), *entries], side)


def _agent(task: Mapping, report: ProblemReporter) -> Mapping:
    """A child whose failure is data."""
    framework = task.entries.get("framework")
    if framework is not None and text_value(framework.value) != "noetl":
        message = f"agents of {describe_node(framework.value)} cannot run here"
        report("in-use-inexpressible", framework.value, message, "`framework: noetl` runs a playbook")
        return _noop(task)
    entrypoint = task.entries.get("entrypoint")
    if entrypoint is None:
        near = next((key for key in task.entries if closest_words(key, ["entrypoint"])), None)
        hint = f"did you mean it by `{near}`?" if near is not None else "name the path of a playbook"
        report("missing-key", task, "an `agent` needs `entrypoint`", hint)
        return _noop(task)
    kind = task.entries["kind"]
    entries: list[MappingEntry] = [
        new_entry("kind", new_text("playbook", kind.value), kind),
        new_entry("path", entrypoint.value, entrypoint),
    ]
    payload = task.entries.get("payload") or task.entries.get("input") or task.entries.get("args")
    if payload is not None:
        entries.append(new_entry("args", payload.value, payload))
    spec = task.get("spec")
    knobs = [*entries_of(spec), new_entry("on_failure", node_of("continue", kind))]
    entries += [entry for entry in task if entry.key not in _AGENT_KEYS and entry.key != "spec"]
    return new_mapping([*entries, new_entry("spec", new_mapping(knobs, kind))], task)


def _ducklake(task: Mapping, report: ProblemReporter) -> Mapping:
    """DuckDB with the lake attached."""
    catalog = task.entries.get("catalog_connection") or task.entries.get("catalog")
    if catalog is None or text_value(catalog.value) is None:
        at = catalog.value if catalog is not None else task
        report(
            "missing-key", at, "a `ducklake` task needs `catalog_connection`", "name the catalog of the lake"
        )
        return _noop(task)
    name = text_value(task.get("catalog_name")) or "lake"
    path = text_value(task.get("data_path"))
    address = text_value(catalog.value) or ""
    address = address if address.startswith("ducklake:") else f"ducklake:{address}"
    options = f" (DATA_PATH '{path}')" if path is not None else ""
    attach = ["LOAD ducklake", f"ATTACH IF NOT EXISTS '{address}' AS {name}{options}", f"USE {name}"]
    statements: list[Node] = [new_text(text, catalog) for text in attach]
    for key in ("command", "query", "commands"):
        statements += listed_items(task.get(key))
    kind = task.entries["kind"]
    dropped = ("command", "query", "commands", *_LAKE_KEYS)
    entries = [
        new_entry("kind", new_text("duckdb", kind.value), kind),
        *(entry for entry in task if entry.key not in dropped),
        new_entry("commands", new_sequence(statements, catalog), catalog),
    ]
    return new_mapping(entries, task)


def _noop(task: Mapping) -> Mapping:
    """What was reported has a harmless form, so nobody hears of it twice."""
    kind = task.entries.get("kind")
    return new_mapping([new_entry("kind", node_of("noop", kind or task))], task)
