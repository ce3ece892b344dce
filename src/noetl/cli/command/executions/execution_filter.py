"""Executions by what holds for them: the filters of `list`, and `--where` of `cancel` and `retry`."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import click
from msgspec import Struct
from msgspec.structs import asdict, replace

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import parse_time, pluralize
from noetl.cli.store_access import has_store, with_store
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.remote_control import RemoteControl
from noetl.home import result_store_of
from noetl.model.errors import NoetlError
from noetl.model.timestamp import iso_time
from noetl.ports.store import ENDED_STATUSES, ExecutionQuery, ExecutionRecord, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.ownership import owners_in

LocalOperation: TypeAlias = Callable[[RemoteControl, str], Awaitable[object]]
"""What is done to one execution of the embedded store. Raises NoetlError."""
_KEYS = ("status", "path", "label", "since", "until", "version", "error_kind", "q", "roots")
_EVERYTHING = "all"
_STATUSES = ("running", "paused", *ENDED_STATUSES)
_PAGE = 1_000

where_option = click.option(
    "--where",
    type=options.TextArgument(),
    metavar="K=V,…",
    help="All for which this holds: status, path, label=K=V, since, until, version, error_kind, q, "
    "roots=true; `all` for all that there are.",
)
optional_execution = click.argument("name", type=options.TextArgument(), metavar="[ID]", required=False)


class Matching(Struct, frozen=True, kw_only=True):
    """What must hold; times are microseconds since 1970, 0 for none. `version` is one of the whole `path`."""

    status: tuple[str, ...] = ()
    path: str = ""
    labels: dict[str, str] = {}
    since: int = 0
    until: int = 0
    version: int | None = None
    error_kind: str = ""
    q: str = ""
    roots: bool = False

    async def query(self, store: Store, **more: Any) -> ExecutionQuery:
        """For a store. Raises CommandFailure if there is no such version."""
        playbook = ""
        if self.version is not None:
            entry = await store.catalog_entry(self.path, self.version)
            if entry is None:
                message = f"no playbook `{self.path}@{self.version}` is registered"
                raise CommandFailure("not_found", message, hint="`noetl catalog versions PATH` lists them")
            playbook = entry.hash
        return ExecutionQuery(
            status=self.status,
            path=self.path,
            labels=self.labels,
            since=self.since,
            until=self.until,
            playbook=playbook,
            error_kind=self.error_kind,
            text=self.q,
            roots=self.roots,
            **more,
        )

    def fields(self) -> dict[str, Any]:
        """For a server."""
        values = asdict(self)
        for name in ("since", "until"):
            values[name] = iso_time(values[name]) if values[name] else ""
        return values


def require_path_of_version(path: str, version: int | None) -> None:
    """Raises CommandFailure."""
    if version is not None and not path:
        raise CommandFailure("argument", "a version is one of a path", hint="name the path, too")


def parse_label(word: str, option: str = "--label") -> tuple[str, str]:
    """Raises CommandFailure."""
    name, equals, value = word.partition("=")
    if not equals or not name:
        raise CommandFailure(
            "argument", f"{option} {word}: a name, `=` and a value are needed", hint="--label team=data"
        )
    return name, value


def _where_parts(text: str) -> list[str]:
    """At its commas, but for those that belong to the text behind `q=`: what follows them names no key."""
    parts: list[str] = []
    for part in text.split(","):
        if parts and parts[-1].startswith("q=") and part.strip().partition("=")[0] not in _KEYS:
            parts[-1] += f",{part}"
        else:
            parts.append(part.lstrip())
    return parts


def parse_where(text: str) -> Matching:
    """`status=failed,path=shop/,label=team=data`, or `all`. Raises CommandFailure."""
    if text.strip() == _EVERYTHING:
        return Matching()
    values: dict[str, Any] = {}
    labels: dict[str, str] = {}
    for part in _where_parts(text):
        key, equals, value = part.strip().partition("=")
        if key not in _KEYS or not equals or not value:
            hint = f"key=value, several with commas, or `all`; the keys are {', '.join(_KEYS)}"
            raise CommandFailure("argument", f"--where: `{part.strip()}` says nothing", hint=hint)
        if key in values:
            raise CommandFailure("argument", f"--where: `{key}` is given twice")
        match key:
            case "label":
                labels |= [parse_label(value, "--where label=")]
            case "since" | "until":
                values[key] = parse_time(value, f"--where {key}")
            case "version":
                if not (value.isascii() and value.isdigit() and len(value) < 16 and int(value)):
                    raise CommandFailure("argument", f"--where: `{value}` is no version")
                values[key] = int(value)
            case "status":
                if value not in _STATUSES:
                    hint = f"one of {', '.join(_STATUSES)}"
                    raise CommandFailure("argument", f"--where: `{value}` is no status", hint=hint)
                values[key] = (value,)
            case "roots":
                if value != "true":
                    raise CommandFailure(
                        "argument", f"--where: `roots={value}` says nothing", hint="roots=true"
                    )
                values[key] = True
            case _:
                values[key] = value
    matching = Matching(labels=labels, **values)
    if matching == Matching(roots=True):
        raise CommandFailure(
            "argument", "--where: `roots` alone leaves no tree out", hint="`all` does it to all"
        )
    require_path_of_version(matching.path, matching.version)
    return matching


def require_one_target(name: str | None, where: str | None) -> None:
    """An execution, or what holds for several. Raises UsageError."""
    if (name is None) == (where is None):
        raise click.UsageError("one execution by its ID, or those of --where")


def operate_on_matching(
    configuration: Configuration,
    verb: str,
    where: str,
    statuses: tuple[str, ...],
    operation: LocalOperation,
    *,
    yes: bool,
    **details: Any,
) -> int:
    """Does the same to all that match, and says what has become of each; 1 if some were refused.

    `details` is what a server is told beside it: a reason, a signal and its payload.

    Who sits at a terminal is asked first. `statuses` are those it can be done to. Raises CommandFailure.
    """
    matching = parse_where(where)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import count_matching_remote, operate_on_matching_remote

        count, more = count_matching_remote(configuration, verb, matching.fields(), details)
        _confirm(configuration, verb, count, more, yes=yes)
        verdicts = operate_on_matching_remote(configuration, verb, matching.fields(), details)
    else:
        matching = matching if matching.status else replace(matching, status=statuses)
        records: list[ExecutionRecord] = []
        if has_store(configuration):
            records = with_store(configuration, lambda _, store: _all_that_match(store, matching))
        _confirm(configuration, verb, len(records), yes=yes)
        verdicts = []
        if records:
            verdicts = with_store(
                configuration,
                lambda home, store: _operate_on_all(configuration, home, store, records, operation),
                writing=True,
            )
    return _print_verdicts(configuration, verb, verdicts)


async def _all_that_match(store: Store, matching: Matching) -> list[ExecutionRecord]:
    records: list[ExecutionRecord] = []
    query = await matching.query(store, limit=_PAGE)
    while True:
        page = await store.executions(query)
        records += page.executions
        if not page.next:
            return records
        query = replace(query, cursor=page.next)


async def _operate_on_all(
    configuration: Configuration,
    home: Home,
    store: Store,
    records: list[ExecutionRecord],
    operation: LocalOperation,
) -> list[dict[str, Any]]:
    playbooks = Playbooks(allow_kinds=configuration.settings.allow_kinds)
    results = result_store_of(configuration, home, store)
    control = RemoteControl(store, owners_in(home), results, playbooks)
    verdicts: list[dict[str, Any]] = []
    for record in records:
        verdict: dict[str, Any] = {"execution_id": record.execution_id, "status": record.status}
        try:
            await operation(control, record.execution_id)
        except NoetlError as refusal:
            verdict["error"] = {"code": "refused", "message": str(refusal)}
        else:
            after = await store.execution(record.execution_id)
            verdict["status"] = after.status if after else record.status
        verdicts.append(verdict)
    return verdicts


def _confirm(configuration: Configuration, verb: str, count: int, more: str = "", *, yes: bool) -> None:
    if not count or yes or not console.can_ask(configuration.settings.output):
        return
    if not click.confirm(f"{verb.capitalize()} {pluralize(count, 'execution')}{more}?", err=True):
        raise CommandFailure("declined", "nothing was done", exit_code=1)


def _print_verdicts(configuration: Configuration, verb: str, verdicts: list[dict[str, Any]]) -> int:
    refused = [verdict for verdict in verdicts if "error" in verdict]
    if configuration.settings.output == "json":
        console.write_json({"executions": verdicts, "refused": len(refused)})
    else:
        for verdict in refused:
            message = console.visible(verdict["error"]["message"])
            console.say(f"{verdict['execution_id']}: {message}")
        done = pluralize(len(verdicts) - len(refused), "execution")
        console.say(f"{verb}: {done}" + (f"; refused: {len(refused)}" if refused else ""))
    return 1 if refused else 0
