"""Parts of documents beside their steps in two spellings, and cursors: canonical, and as in use."""

from typing import Any, NamedTuple

from tests.dsl.in_use.twin_reads import TwinStep

EFFECTLESS = (
    "`admit.mode`, `loop.spec.policy.results`, `executor.version`, `executor.requires`, "
    "`executor.spec.policy.{defaults,results,limits}`"
)


class SectionTwin(NamedTuple):
    """Root keys in both spellings; `warns` are codes of warnings that the one in use gets."""

    in_use: dict[str, Any]
    canonical: dict[str, Any]
    row: str
    warns: tuple[str, ...] = ()


def section_twins(entry: TwinStep) -> list[SectionTwin]:
    """Each of them has keys of its own; `entry` is the first step."""
    return [
        SectionTwin(
            {
                "executor": {
                    "version": 2,
                    "requires": ["http"],
                    "spec": {"entry_step": entry.source, "policy": {"limits": {"a": 1}}},
                }
            },
            {"executor": {"spec": {"entry_step": entry.name}}},
            EFFECTLESS,
            ("no-effect",),
        ),
        SectionTwin(
            {"tracing": {"on": True}, "spec": {"a": 1}}, {}, "root `tracing`, `spec`", ("no-effect",)
        ),
        SectionTwin(
            {"workbook": [{"name": "b", "tool": {"kind": "python", "code": "result = 1", "timeout": 3}}]},
            {"workbook": [{"name": "b", "kind": "python", "code": "result = 1", "spec": {"timeout": 3}}]},
            "workbook entry `{name, tool: {…}, assert}`",
        ),
    ]


class EntryTwin(NamedTuple):
    """An entry of the keychain in use, and the canonical ones that it becomes."""

    in_use: dict[str, Any]
    canonical: list[dict[str, Any]]
    row: str


ENTRIES = [
    EntryTwin(
        {"name": "k", "type": "bearer", "token": "abcdefgh", "scope": "global", "auto_renew": True, "ttl": 9},
        [{"name": "k", "kind": "bearer", "token": "abcdefgh"}],
        "`type` for `kind`; `scope`, `auto_renew`, `ttl`",
    ),
    EntryTwin(
        {"name": "fixed", "kind": "static", "map": {"a": "b"}},
        [{"name": "fixed", "kind": "static", "data": {"a": "b"}}],
        "`static` with `map`",
    ),
    EntryTwin(
        {
            "name": "several",
            "kind": "secrets",
            "provider": "google",
            "map": {"token": "projects/p/secrets/s/versions/3", "other": "plain"},
        },
        [
            {
                "name": "several__token",
                "kind": "secret_manager",
                "provider": "gcp",
                "project": "p",
                "secret": "s",
                "version": "3",
            },
            {"name": "several__other", "kind": "secret_manager", "provider": "gcp", "secret": "plain"},
        ],
        "`secrets`, `provider`, `auth`, `map: {field: path}`",
    ),
    EntryTwin(
        {
            "name": "asked",
            "kind": "oauth2",
            "endpoint": "http://host/token",
            "method": "POST",
            "data": {
                "grant_type": "client_credentials",
                "client_id": "me",
                "client_secret": "{{ keychain.several.token }}",
            },
        },
        [
            {
                "name": "asked",
                "kind": "oauth2",
                "token_url": "http://host/token",
                "client_id": "me",
                "client_secret": "{{ keychain.several__token.value }}",
                "client_auth": "body",
            }
        ],
        "`oauth2` with `endpoint`, `method`, `headers`, `data`",
    ),
]


class CursorTwin(NamedTuple):
    in_use: dict[str, Any]
    claim: dict[str, Any]
    work: dict[str, Any]


def cursor_twin(name: str, *, by_frame: bool, flight: int) -> CursorTwin:
    """A step with a cursor, without its arcs."""
    claim = {"kind": "duckdb", "auth": "db"}
    spec: dict[str, Any] = {"mode": "cursor", "frame": {"max_rows": 7, "lease_seconds": 3}}
    if by_frame:
        spec["process"] = "frame"
    if flight > 1:
        spec |= {"max_in_flight": flight, "row_concurrency": 2}
    command = "UPDATE q SET a = 1 LIMIT {} RETURNING id"
    old = {
        "step": name,
        "loop": {
            "cursor": {**claim, "claim": command.format("{{ __frame_max_rows }}"), "heartbeat": 5},
            "iterator": "item",
            "spec": spec,
        },
        "tool": {"kind": "noop", "input": {"a": "{{ iter.item }}"}},
    }
    loop: dict[str, Any] = {"in": "{{ [args.rows] }}" if by_frame else "{{ args.rows }}", "iterator": "item"}
    if flight > 1:
        loop["spec"] = {"mode": "parallel", "max_in_flight": flight * 2}
    work = {
        "step": f"{name}__rows",
        "loop": loop,
        "tool": {"kind": "noop", "args": {"a": "{{ iter.item }}"}},
        "next": {"arcs": [{"step": name, "when": "{{ event.name == 'loop.done' }}"}]},
    }
    first = {
        "step": f"{name}__rows",
        "when": "{{ event.name == 'step.done' and event.result.row_count > 0 }}",
        "args": {"rows": "{{ event.result.rows }}"},
    }
    return CursorTwin(
        old,
        {"step": name, "tool": {**claim, "command": command.format(7)}, "next": {"arcs": [first]}},
        work,
    )
