"""Tasks in two spellings: canonical, and as the language is in use. Each says which row of the tables it is of."""

from collections.abc import Mapping
from typing import Any, NamedTuple

NUMBER = "{{ (execution_id | replace('-', ''))[-15:] | int(0, 16) }}"
RENAME = "result = [{target: row[source] for target, source in mapping.items()} for row in rows]\n"
_CHILD = {
    "apiVersion": "noetl.io/v2",
    "kind": "Playbook",
    "metadata": {"name": "child", "path": "child"},
    "workflow": [{"step": "c", "tool": {"kind": "noop"}}],
}


class Twin(NamedTuple):
    """One value as it is written in each; `rows` are the spellings of docs/dialects.md that are in it."""

    in_use: Any
    canonical: Any
    rows: tuple[str, ...] = ()


class TaskTwin(NamedTuple):
    """A task without name and policy. `before` are those that stand before it in the canonical pipeline."""

    kind: str
    in_use: Mapping[str, Any]
    canonical: Mapping[str, Any]
    row: str = ""
    before: tuple[Mapping[str, Any], ...] = ()


def task_twins(label: str, *, iterator: str) -> list[TaskTwin]:
    """Every task that the generator knows, for this label."""
    return [
        TaskTwin("noop", {}, {}),
        TaskTwin("http", {"url": "http://host"}, {"url": "http://host"}),
        TaskTwin("python", {"code": "result = {'x': 1}"}, {"code": "result = {'x': 1}"}),
        *_http(),
        *_python(iterator=iterator),
        *_shell(),
        *_sql(label),
        *_result_tasks(),
        *_others(label),
    ]


def _http() -> list[TaskTwin]:
    request = {"method": "GET", "endpoint": "http://host", "params": {"a": 1}, "headers": {"X": "1"}}
    url = {"url": "http://host"}
    return [
        TaskTwin("http", {"spec": request}, request, "inputs under `spec`"),
        TaskTwin(
            "http",
            {**url, "verify_ssl": False, "follow_redirects": False},
            {**url, "spec": {"verify": False, "follow_redirects": False}},
            "http `verify_ssl`, `follow_redirects`",
        ),
        TaskTwin(
            "http",
            {**url, "headers": {"X": "1", "authorization": "Bearer {{ token('k') }}"}},
            {**url, "headers": {"X": "1"}, "auth": "k"},
            "`Bearer {{ token(NAME) }}`",
        ),
    ]


def _python(*, iterator: str) -> list[TaskTwin]:
    twins = [
        TaskTwin(
            "python",
            {"code": "result = {'x': {{ w }}, 'y': '{{ w }}!'}"},
            {"code": "result = {'x': w, 'y': (str(w) + '!')}", "args": {"w": "{{ w }}"}},
            "`{{ … }}` in python `code`",
        ),
        TaskTwin(
            "python",
            {"code": "result = r'a{{ w }}'"},
            {"code": "result = (r'a' + str(w))", "args": {"w": "{{ w }}"}},
            "`{{ … }}` in python `code`",
        ),
        TaskTwin(
            "python",
            {"code": "result = {'x': json.dumps(1)}", "libs": ["json", "msgspec>=0.18"]},
            {"code": "result = {'x': json.dumps(1)}", "libs": {"json": "json", "msgspec": "msgspec"}},
            "python `libs: [package]`",
        ),
        TaskTwin(
            "python",
            {"script": {"uri": "tests/a.py", "source": {"type": "file"}}},
            {"script": {"uri": "tests/a.py", "source": {"type": "file"}}},
            "script `uri` relative",
        ),
        TaskTwin("python", {"spec": {"code": "result = 1"}}, {"code": "result = 1"}, "inputs under `spec`"),
    ]
    if iterator:
        # A module of that name is not the item.
        own = {"code": f"import json as {iterator}\nresult = {iterator}.dumps(1)"}
        twins.append(TaskTwin("python", own, own))
        twins.append(
            TaskTwin(
                "python",
                {"code": f"result = {{'x': [{iterator}, loop_index, _index, _total]}}"},
                {
                    "code": f"result = {{'x': [{iterator}, loop_index, _index, _total]}}",
                    "args": {
                        iterator: f"{{{{ iter.{iterator} }}}}",
                        "loop_index": "{{ iter.index }}",
                        "_index": "{{ iter.index }}",
                        "_total": "{{ iter.count }}",
                    },
                },
                "iterator, `loop_index`, `_index`, `_total` in python code or read bare",
            )
        )
    return twins


def _shell() -> list[TaskTwin]:
    return [
        TaskTwin(
            "shell",
            {"cmds": ["a", "b"]},
            {"command": "set -e\na\nb\n"},
            "shell `cmds: [a, b]`",
        ),
        TaskTwin(
            "shell",
            {"command": "echo '{{`{{.State}}`}}' {{ w }}"},
            {"command": "echo '{% raw %}{{.State}}{% endraw %}' {{ w }}"},
            "`` {{`text`}} `` in shell text",
        ),
    ]


def _sql(label: str) -> list[TaskTwin]:
    dsn = {"dsn": "postgres://host/db"}
    return [
        TaskTwin(
            "postgres",
            {**dsn, "command": "SELECT 1", "pool": {"name": "a", "min_size": 1, "max_size": 2, "timeout": 3}},
            {**dsn, "command": "SELECT 1", "spec": {"pool": {"min": 1, "max": 2, "timeout": 3}}},
            "postgres `pool: {min_size, max_size, timeout}`",
        ),
        TaskTwin(
            "duckdb",
            {"command": "SELECT {{ execution_id }}, '{{ job.uuid }}'"},
            {"command": f"SELECT {NUMBER}, '{{{{ execution_id }}}}'"},
            "`{{ execution_id }}` unquoted in SQL",
        ),
        TaskTwin(
            "duckdb",
            {"script": {"uri": "a.sql", "source": {"type": "file"}}},
            {"command": f"{{{{ {label}__script }}}}"},
            "postgres/duckdb `script: {uri, source}`",
            (
                {
                    "name": f"{label}__script",
                    "kind": "file",
                    "action": "get",
                    "url": "a.sql",
                    "format": "text",
                },
            ),
        ),
        TaskTwin(
            "postgres",
            {**dsn, "script": {"uri": "s3://team/a.sql", "source": {"type": "s3", "auth": "bucket"}}},
            {**dsn, "command": f"{{{{ {label}__script }}}}"},
            "`source.type: gcs` or `s3`, `auth`",
            (
                {
                    "name": f"{label}__script",
                    "kind": "s3",
                    "action": "get",
                    "url": "s3://team/a.sql",
                    "format": "text",
                    "auth": "bucket",
                },
            ),
        ),
        TaskTwin(
            "ducklake",
            {"catalog_connection": "a.lake", "catalog_name": "lake", "data_path": "d", "command": "SELECT 1"},
            {
                "kind": "duckdb",
                "commands": [
                    "LOAD ducklake",
                    "ATTACH IF NOT EXISTS 'ducklake:a.lake' AS lake (DATA_PATH 'd')",
                    "USE lake",
                    "SELECT 1",
                ],
            },
            "`ducklake`",
        ),
        TaskTwin(
            "transfer",
            {
                "source": {"kind": "duckdb", "query": "SELECT 1 AS a"},
                "target": {**dsn, "table": "t"},
                "mode": "replace",
                "mapping": {"b": "a"},
            },
            {"kind": "postgres", **dsn, "into": "t", "rows": f"{{{{ {label}__rename }}}}"},
            "`transfer: {source, target, mode, mapping}`",
            (
                {"name": f"{label}__read", "kind": "duckdb", "query": "SELECT 1 AS a"},
                {
                    "name": f"{label}__rename",
                    "kind": "python",
                    "args": {"rows": "{{ _prev.rows }}", "mapping": {"b": "a"}},
                    "code": RENAME,
                },
                {"name": f"{label}__truncate", "kind": "postgres", **dsn, "command": "TRUNCATE t"},
            ),
        ),
        TaskTwin(
            "transfer",
            {"source": {"type": "postgres", **dsn, "query": "SELECT 1"}, "target": {**dsn, "table": "t"}},
            {"kind": "postgres", **dsn, "into": "t", "rows": "{{ _prev.rows }}"},
            "`transfer: {source, target, mode, mapping}`",
            ({"name": f"{label}__read", "kind": "postgres", **dsn, "query": "SELECT 1"},),
        ),
    ]


def _result_tasks() -> list[TaskTwin]:
    return [
        TaskTwin(
            "noop",
            {"output": {"output_select": ["a"], "store": "auto", "inline_max_bytes": 9}},
            {"spec": {"result": {"select": ["a"], "store": "auto", "inline_max_bytes": 9}}},
            "`output: {output_select, store, inline_max_bytes}` of a task or step",
        ),
        TaskTwin("noop", {"result": {"x": "{{ w }}"}}, {"args": {"x": "{{ w }}"}}, "`noop` with `result`"),
        TaskTwin(
            "noop",
            {"result": "{{ w }}"},
            {"kind": "python", "args": {"value": "{{ w }}"}, "code": "result = value\n"},
            "`noop` with `result`",
        ),
        TaskTwin("noop", {"output_select": {"a": "b"}}, {}, "`output_select: {…}` (mapping)"),
        TaskTwin(
            "artifact",
            {"input": {"result_ref": "{{ workload.w }}"}},
            {"action": "get", "ref": "{{ workload.w }}", "format": "json"},
            "artifact `input: {result_ref}`",
        ),
    ]


def _others(label: str) -> list[TaskTwin]:
    return [
        TaskTwin("playbook", {"task": label, "document": _CHILD}, {"document": _CHILD}, "playbook `task`"),
        TaskTwin(
            "nats",
            {"operation": "publish", "subject": "a", "payload": 1, "auth": "n"},
            {"action": "publish", "subject": "a", "payload": 1, "auth": "n"},
            "`nats` `operation`",
        ),
        TaskTwin(
            "agent",
            {"framework": "noetl", "entrypoint": "a/b", "payload": {"n": "{{ w }}"}},
            {"kind": "playbook", "path": "a/b", "args": {"n": "{{ w }}"}, "spec": {"on_failure": "continue"}},
            "`agent`, `framework: noetl`",
        ),
    ]
