"""The tables of the language (002 §6) as views of a store: for SQLite and for PostgreSQL, made of one text.

Each asks `event`, `execution` and `playbook`, and nothing is kept: what it shows is what there is. Its
columns are those of the export (`noetl.engine.archive.table_rows`), whose rows a test compares with these.
"""

# ruff: noqa: S608 - all that is put together here is of this module, but for the name of a schema, which is checked

from abc import ABC, abstractmethod
from typing import Final

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event_kind import EVENT_KINDS, KIND_NUMBERS
from noetl.model.reference import JSON_MEDIA_TYPE, MARKER, OWN_STORE

VIEW_NAMES: Final = (
    "playbook",
    "playbook_step",
    "playbook_arc",
    "execution",
    "event_log",
    "token",
    "step_run",
    "task_run",
    "attempt",
    "result_ref",
    "manifest_ref",
)

_ENDS = (of.StepDone, of.LoopDone, of.StepFailed, of.StepCompletedByHand, of.StepSkipped)
_REOPENINGS = (of.ExecutionRetried, of.IterationsRedriven)
_STATUS: Final[dict[type[EventBody], str]] = {
    # Where it depends on what the body says, as the table of events has it.
    of.PlaybookRequestEvaluated: "CASE WHEN {error_kind} IS NULL THEN 'success' ELSE 'error' END",
    of.NextEvaluated: "CASE WHEN {error_kind} IS NULL THEN 'success' ELSE 'error' END",
    of.WorkflowFinished: "CASE {status} WHEN 'completed' THEN 'success' ELSE 'error' END",
    of.PlaybookProcessed: "CASE {status} WHEN 'completed' THEN 'success' ELSE 'error' END",
    of.TaskProcessed: "CASE {outcome_status} WHEN 'ok' THEN 'success' ELSE 'error' END",
    of.LoopIterationCompleted: "{status}",
    of.TokenDiscarded: "CASE {reason} WHEN 'absorbed' THEN 'success' ELSE 'error' END",
}


def kind_list(*kinds: type[EventBody]) -> str:
    return ", ".join(str(KIND_NUMBERS[kind]) for kind in kinds)


class ViewDialect(ABC):
    """What the two databases write differently. A path is a list of keys and places, counted from 0."""

    schema: str

    @abstractmethod
    def events(self, *kinds: type[EventBody]) -> str:
        """A relation of `execution_id, seq, ts, kind, doc`; all events without kinds."""

    @abstractmethod
    def executions(self) -> str:
        """The relation `execution` with `id` and `version`."""

    @abstractmethod
    def document(self) -> str:
        """Of the table `playbook`, as JSON."""

    @abstractmethod
    def text(self, value: str, *path: str | int) -> str: ...

    @abstractmethod
    def number(self, value: str, *path: str | int) -> str:
        """A whole one."""

    @abstractmethod
    def real(self, value: str, *path: str | int) -> str:
        """A number; null where something else is."""

    @abstractmethod
    def truth(self, value: str, *path: str | int) -> str: ...

    @abstractmethod
    def json(self, value: str, *path: str | int) -> str: ...

    @abstractmethod
    def constant(self, value: str) -> str:
        """The JSON of this text."""

    @abstractmethod
    def each(self, alias: str, value: str, *path: str | int) -> str:
        """A relation of the items of a list; none where there is no list."""

    @abstractmethod
    def index(self, alias: str) -> str:
        """The place of an item of `each`, counted from 0."""

    @abstractmethod
    def list_of(self, value: str, order: str) -> str:
        """The aggregate of texts as a JSON list."""

    @abstractmethod
    def references(self) -> str:
        """A relation of `execution_id, seq, kind, doc, reference`: all that stand for something stored."""

    @abstractmethod
    def time(self, micros: str) -> str: ...

    @abstractmethod
    def greatest(self, *values: str) -> str: ...


class SqliteDialect(ViewDialect):
    """For a file that is attached by the name `schema`. Times are texts, as in envelopes."""

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def events(self, *kinds: type[EventBody]) -> str:
        condition = f" WHERE v.kind IN ({kind_list(*kinds)})" if kinds else " WHERE v.x > 0"
        return (
            f"(SELECT e.id AS execution_id, v.seq, v.ts, v.kind, CAST(v.body AS TEXT) AS doc"
            f" FROM {self.schema}.event v JOIN {self.schema}.execution e USING (x){condition})"
        )

    def executions(self) -> str:
        version = f"(SELECT max(v.seq) FROM {self.schema}.event v WHERE v.x = e.x)"
        return f"(SELECT e.*, {version} AS version FROM {self.schema}.execution e)"

    def document(self) -> str:
        return "CAST(document AS TEXT)"

    def text(self, value: str, *path: str | int) -> str:
        # In brackets: `||` binds no weaker than this.
        return f"({value} ->> '{self._path(path)}')"

    number = truth = text

    def real(self, value: str, *path: str | int) -> str:
        kind = f"json_type({value}, '{self._path(path)}')"
        return f"CASE WHEN {kind} IN ('integer', 'real') THEN CAST({self.text(value, *path)} AS REAL) END"

    def json(self, value: str, *path: str | int) -> str:
        return f"({value} -> '{self._path(path)}')"

    def constant(self, value: str) -> str:
        return f"'{value}'"

    def each(self, alias: str, value: str, *path: str | int) -> str:
        return f"json_each({value}, '{self._path(path)}') {alias}"

    def index(self, alias: str) -> str:
        return f"{alias}.key"

    def list_of(self, value: str, order: str) -> str:  # noqa: ARG002 - items come in their order
        return f"json_group_array({value})"

    def references(self) -> str:
        marker = f"'$.\"{MARKER}\"'"
        return (
            f"(SELECT v.execution_id, v.seq, v.kind, v.doc, r.value AS reference"
            f" FROM {self.events()} v, json_tree(v.doc) r"
            f" WHERE instr(v.doc, '\"{MARKER}\"') > 0 AND r.type = 'object'"
            f" AND r.value ->> {marker} IN ('ref', 'manifest'))"
        )

    def time(self, micros: str) -> str:
        seconds = f"strftime('%Y-%m-%dT%H:%M:%S', {micros} / 1000000, 'unixepoch')"
        return f"{seconds} || printf('.%06dZ', {micros} % 1000000)"

    def greatest(self, *values: str) -> str:
        return f"max({', '.join(values)})"

    def _path(self, path: tuple[str | int, ...]) -> str:
        return "$" + "".join(f"[{part}]" if isinstance(part, int) else f'."{part}"' for part in path)


class PostgresDialect(ViewDialect):
    """JSON is `jsonb`, in which character 0 is shown as U+FFFD, and times are `timestamptz`."""

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def events(self, *kinds: type[EventBody]) -> str:
        condition = f" WHERE kind IN ({kind_list(*kinds)})" if kinds else ""
        doc = self._jsonb("body")
        return f"(SELECT execution_id, seq, ts, kind, {doc} AS doc FROM {self.schema}.event{condition})"

    def _jsonb(self, column: str) -> str:
        text = f"convert_from({column}, 'UTF8')"
        # An escaped backslash before `u0000` is text of somebody's, and no character 0.
        zero = rf"regexp_replace({text}, '(?<!\\)((\\\\)*)\\u0000', '\1\\ufffd', 'g')"
        return rf"(CASE WHEN strpos({text}, '\u0000') > 0 THEN {zero} ELSE {text} END)::jsonb"

    def executions(self) -> str:
        return f"{self.schema}.execution"

    def document(self) -> str:
        return self._jsonb("document")

    def text(self, value: str, *path: str | int) -> str:
        return f"({value} #>> {self._path(path)})"

    def number(self, value: str, *path: str | int) -> str:
        return f"{self.text(value, *path)}::bigint"

    def real(self, value: str, *path: str | int) -> str:
        is_number = f"jsonb_typeof({value} #> {self._path(path)}) = 'number'"
        return f"CASE WHEN {is_number} THEN {self.text(value, *path)}::double precision END"

    def truth(self, value: str, *path: str | int) -> str:
        return f"{self.text(value, *path)}::boolean"

    def json(self, value: str, *path: str | int) -> str:
        return f"({value} #> {self._path(path)})"

    def constant(self, value: str) -> str:
        return f"'{value}'::jsonb"

    def each(self, alias: str, value: str, *path: str | int) -> str:
        items = self.json(value, *path)
        # Not `coalesce`: a null of JSON is no list either.
        items = f"CASE jsonb_typeof({items}) WHEN 'array' THEN {items} ELSE '[]' END"
        return f"jsonb_array_elements({items}) WITH ORDINALITY {alias}(value, ordinal)"

    def index(self, alias: str) -> str:
        return f"({alias}.ordinal - 1)"

    def list_of(self, value: str, order: str) -> str:
        return f"coalesce(jsonb_agg({value} ORDER BY {order}), '[]')"

    def references(self) -> str:
        marked = f'strict $.** ? (@."{MARKER}" == "ref" || @."{MARKER}" == "manifest")'
        return (
            f"(SELECT v.execution_id, v.seq, v.kind, v.doc, r AS reference"
            f" FROM {self.events()} v, jsonb_path_query(v.doc, '{marked}') r)"
        )

    def time(self, micros: str) -> str:
        # Not `to_timestamp`: that takes seconds as a float, which has no room for microseconds.
        return f"(timestamptz 'epoch' + {micros} * interval '1 microsecond')"

    def greatest(self, *values: str) -> str:
        return f"greatest({', '.join(values)})"

    def _path(self, path: tuple[str | int, ...]) -> str:
        return f"'{{{','.join(map(str, path))}}}'"


def view_queries(dialect: ViewDialect) -> dict[str, str]:
    """What each view selects, by its name. None of them asks another one."""
    views = _Views(dialect)
    return {name: getattr(views, name)() for name in VIEW_NAMES}


class _Views:
    def __init__(self, dialect: ViewDialect) -> None:
        self._d = dialect

    def playbook(self) -> str:
        d, metadata = self._d, ("playbook", "metadata", 1)
        return f"""
SELECT hash AS playbook, {d.text("doc", *metadata, "path")} AS path,
  {d.text("doc", *metadata, "name")} AS name,
  {d.text("doc", *metadata, "version")} AS version,
  coalesce({d.text("doc", *metadata, "description")}, '') AS description,
  coalesce({d.json("doc", *metadata, "labels")}, {d.constant("{}")}) AS labels,
  (SELECT count(*) FROM {d.each("s", "doc", "playbook", "workflow")} WHERE {d.index("s")} > 0) AS steps,
  {d.json("doc", "playbook", "document")} AS document
FROM {self._documents}"""

    @property
    def _documents(self) -> str:
        """Only those that ran in a release that kept what it read beside the text."""
        d = self._d
        documents = f"(SELECT hash, {d.document()} AS doc FROM {d.schema}.playbook) p"
        return f"{documents} WHERE {d.json('doc', 'playbook', 'metadata')} IS NOT NULL"

    @property
    def _steps(self) -> str:
        """`playbook, position, step`; the first item of a list says that it is one."""
        d = self._d
        return (
            f"(SELECT p.hash AS playbook, {d.index('s')} - 1 AS position, {d.json('s.value', 1)} AS step"
            f" FROM (SELECT hash, {d.document()} AS doc FROM {d.schema}.playbook) p,"
            f" {d.each('s', 'p.doc', 'playbook', 'workflow')} WHERE {d.index('s')} > 0)"
        )

    def playbook_step(self) -> str:
        d = self._d
        tasks = f"FROM {d.each('t', 'step', 'tasks')} WHERE {d.index('t')} > 0"
        kinds = d.list_of(d.text("t.value", 1, "kind"), d.index("t"))
        loop_mode = d.text("step", "loop", 1, "mode")
        return f"""
SELECT playbook, {d.text("step", "name")} AS step, position,
  (SELECT count(*) {tasks}) AS tasks, (SELECT {kinds} {tasks}) AS kinds,
  CASE WHEN {d.json("step", "loop", 1)} IS NOT NULL THEN coalesce({loop_mode}, 'sequential') END AS loop_mode,
  {d.text("step", "join", 1, "mode")} AS join_mode,
  coalesce({d.text("step", "desc")}, '') AS description
FROM {self._steps} s"""

    def playbook_arc(self) -> str:
        d = self._d
        guard = d.json("a.value", 1, "when")
        return f"""
SELECT playbook, {d.text("step", "name")} AS step, {d.index("a")} - 1 AS arc,
  {d.text("a.value", 1, "step")} AS target,
  CASE WHEN {guard} IS NOT NULL THEN coalesce({d.text("a.value", 1, "when", 1)}, 'false') END AS guard,
  coalesce({d.text("step", "router", 1, "mode")}, 'exclusive') AS mode
FROM {self._steps} s, {d.each("a", "step", "router", 1, "arcs")}
WHERE {d.index("a")} > 0"""

    def execution(self) -> str:
        d = self._d
        return f"""
SELECT e.id AS execution_id, e.version AS as_of, e.playbook, e.path, e.status,
  {d.time("e.started_at")} AS started_at,
  CASE WHEN e.ended_at > 0 THEN {d.time("e.ended_at")} END AS ended_at,
  CASE WHEN e.ended_at > 0 THEN (e.ended_at - e.started_at) / 1000.0 END AS duration_ms,
  nullif(e.parent, '') AS parent, coalesce(nullif(e.root, ''), e.id) AS root,
  nullif(e.forked_from, '') AS forked_from, {self._labels} AS labels, e.priority, e.version AS events,
  {d.text("w.doc", "error", "kind")} AS error_kind,
  {d.text("w.doc", "error", "details", "step")} AS error_step,
  {d.text("w.doc", "error", "message")} AS error_message
FROM {d.executions()} e LEFT JOIN (
  SELECT execution_id, doc, row_number() OVER (PARTITION BY execution_id ORDER BY seq DESC) AS place
  FROM {d.events(of.PlaybookProcessed, of.PlaybookRequestEvaluated, *_REOPENINGS)} v
) w ON w.execution_id = e.id AND w.place = 1 AND e.status <> 'completed'"""

    @property
    def _labels(self) -> str:
        return "e.labels::jsonb" if isinstance(self._d, PostgresDialect) else "e.labels"

    def event_log(self) -> str:
        d, case = self._d, self._case
        names = {str(kind.number): f"'{kind.name}'" for kind in EVENT_KINDS}
        entities = {str(kind.number): f"'{kind.entity}'" for kind in EVENT_KINDS}
        return f"""
SELECT execution_id, seq, {d.time("ts")} AS timestamp, {case(names)} AS name,
  {self._source} AS source, {case(entities)} AS entity,
  {self._entity_id} AS entity_id, {self._status} AS status,
  {self._step_run_id} AS step_run_id, {self._task_run_id} AS task_run_id, {self._parent_id} AS parent_id,
  CASE WHEN kind = {kind_list(of.TokenClaimed)} THEN nullif({d.text("doc", "worker")}, '') END AS worker,
  doc AS data
FROM {d.events()} v"""

    def _case(self, by_kind: dict[str, str], otherwise: str = "NULL") -> str:
        """The values by kind; kinds with the same value stand together."""
        kinds: dict[str, list[str]] = {}
        for kind, value in by_kind.items():
            kinds.setdefault(value, []).append(kind)
        whens = [f"WHEN kind IN ({', '.join(numbers)}) THEN {value}" for value, numbers in kinds.items()]
        return f"CASE {' '.join(whens)} ELSE {otherwise} END"

    @property
    def _source(self) -> str:
        """A fork has a field of this name, too, which means something else."""
        workers = [kind.body for kind in EVENT_KINDS if kind.source == "worker"]
        source = f"coalesce({self._d.text('doc', 'source')}, 'worker')"
        return f"CASE WHEN kind IN ({kind_list(*workers)}) THEN {source} ELSE 'server' END"

    @property
    def _status(self) -> str:
        d = self._d
        reads = {
            "error_kind": d.text("doc", "error", "kind"),
            "status": d.text("doc", "status"),
            "outcome_status": d.text("doc", "outcome", "status"),
            "reason": d.text("doc", "reason"),
        }
        return self._case(
            {
                str(kind.number): f"'{kind.status}'"
                if isinstance(kind.status, str)
                else _STATUS[kind.body].format(**reads)
                for kind in EVENT_KINDS
            }
        )

    @property
    def _visit(self) -> str:
        """`RUN/ITERATION/TASK/VISIT`."""
        d = self._d
        iteration = f"coalesce({d.number('doc', 'iteration')}, 0)"
        visit = f"coalesce({d.number('doc', 'visit')}, 1)"
        return f"{self._run} || '/' || {iteration} || '/' || {d.text('doc', 'task')} || '/' || {visit}"

    @property
    def _run(self) -> str:
        return f"({self._d.text('doc', 'run')})"

    @property
    def _task_run_id(self) -> str:
        attempt = f"coalesce({self._d.number('doc', 'attempt')}, 1)"
        return (
            f"CASE WHEN kind IN ({kind_list(of.TaskStarted, of.TaskProcessed)})"
            f" THEN {self._visit} || '/' || {attempt} END"
        )

    @property
    def _step_run_id(self) -> str:
        """A token is brought by a run, which is its parent; it belongs to none."""
        scheduled, enqueued = kind_list(of.StepScheduled), kind_list(of.TokenEnqueued)
        return f"CASE kind WHEN {scheduled} THEN 'r' || seq WHEN {enqueued} THEN NULL ELSE {self._run} END"

    @property
    def _entity_id(self) -> str:
        d = self._d
        iterations = kind_list(of.LoopIterationStarted, of.LoopIterationCompleted)
        tokens = kind_list(of.TokenParked, of.TokenAdmitted, of.TokenDiscarded)
        return f"""CASE WHEN kind IN ({kind_list(of.TaskStarted, of.TaskProcessed)}) THEN {self._task_run_id}
    WHEN kind IN ({iterations}) THEN {self._run} || '/' || ({d.number("doc", "index")})
    WHEN kind = {kind_list(of.TokenEnqueued)} THEN 't' || seq
    WHEN kind = {kind_list(of.StepScheduled)} THEN 'r' || seq
    WHEN kind IN ({tokens}) THEN {d.text("doc", "token")}
    WHEN kind = {kind_list(of.TokenClaimed)} THEN coalesce(nullif({d.text("doc", "token")}, ''), {self._run})
    ELSE coalesce({self._run}, execution_id) END"""

    @property
    def _parent_id(self) -> str:
        d = self._d
        parts = of.TaskStarted, of.TaskProcessed, of.LoopIterationStarted, of.LoopIterationCompleted
        parent = d.text("doc", "parent", "execution_id"), d.text("doc", "parent", "task_run_id")
        return f"""CASE WHEN kind IN ({kind_list(*parts, of.TokenEnqueued)}) THEN nullif({self._run}, '')
    WHEN kind = {kind_list(of.StepScheduled)} THEN {d.text("doc", "tokens", 0)}
    WHEN kind = {kind_list(of.PlaybookExecutionRequested)} THEN ({parent[0]}) || '/' || ({parent[1]}) END"""

    def token(self) -> str:
        d = self._d
        args = f"coalesce({d.json('q.doc', 'args')}, {d.constant('{}')})"
        return f"""
SELECT q.execution_id, e.version AS as_of, 't' || q.seq AS token_id, {d.text("q.doc", "step")} AS step,
  coalesce(w.status, 'enqueued') AS status, w.reason,
  nullif({d.text("q.doc", "run")}, '') AS from_step_run_id,
  CASE WHEN {d.number("q.doc", "arc")} >= 0 THEN {d.number("q.doc", "arc")} END AS from_arc,
  w.run AS step_run_id, {d.time("q.ts")} AS enqueued_at, {d.time("w.ended_at")} AS ended_at, {args} AS args
FROM {d.events(of.TokenEnqueued)} q JOIN {d.executions()} e ON e.id = q.execution_id
LEFT JOIN (
  SELECT c.*, row_number() OVER (PARTITION BY execution_id, token ORDER BY seq DESC) AS place FROM (
    SELECT execution_id, {d.text("doc", "token")} AS token, seq,
      CASE {d.text("doc", "mode")} WHEN 'park' THEN 'parked' ELSE 'waiting' END AS status,
      CAST(NULL AS text) AS reason, CAST(NULL AS text) AS run, CAST(NULL AS bigint) AS ended_at
    FROM {d.events(of.TokenParked)} a
    UNION ALL SELECT execution_id, {d.text("doc", "token")}, seq, 'joined', NULL, NULL, NULL
    FROM {d.events(of.TokenAdmitted)} a
    UNION ALL SELECT execution_id, {d.text("doc", "token")}, seq, 'discarded',
      {d.text("doc", "reason")}, NULL, ts
    FROM {d.events(of.TokenDiscarded)} a
    UNION ALL SELECT s.execution_id, {self._item("t")}, s.seq, 'consumed', NULL, 'r' || s.seq, s.ts
    FROM {d.events(of.StepScheduled)} s, {d.each("t", "s.doc", "tokens")}
  ) c
) w ON w.execution_id = q.execution_id AND w.token = 't' || q.seq AND w.place = 1"""

    def _item(self, alias: str) -> str:
        """An item of `each` that is a text."""
        return f"{alias}.value" if isinstance(self._d, SqliteDialect) else f"({alias}.value #>> '{{}}')"

    def step_run(self) -> str:
        d = self._d

        def last(*kinds: type[EventBody], condition: str = "") -> str:
            return f"coalesce(max(CASE WHEN kind IN ({kind_list(*kinds)}){condition} THEN seq END), 0)"

        marks = (of.TokenClaimed, of.LeaseExpired, of.RunSuspended, of.RunResumed, of.LoopStarted, *_ENDS)
        claim = kind_list(of.TokenClaimed)
        of_runs = f" AND coalesce({d.number('doc', 'shard')}, -1) < 0"
        latest = d.greatest(
            "m.claim", "m.lease", "m.reopening", self._no_loop("m.suspension"), self._no_loop("m.resumption")
        )
        reopened = [
            f"UNION ALL SELECT v.execution_id, {self._item('r')}, v.seq, v.ts, v.kind, v.doc"
            f" FROM {d.events(kind)} v, {d.each('r', 'v.doc', 'runs')}"
            for kind in _REOPENINGS
        ]
        ended = "m.ending > m.reopening"
        error = kind_list(of.StepFailed)
        return f"""
SELECT s.execution_id, x.version AS as_of, 'r' || s.seq AS step_run_id, {d.text("s.doc", "step")} AS step,
  CASE WHEN {ended} THEN CASE
      WHEN z.kind = {error} AND {d.text("z.doc", "error", "kind")} = 'cancelled' THEN 'cancelled'
      WHEN z.kind = {error} THEN 'failed' WHEN z.kind = {kind_list(of.StepSkipped)} THEN 'skipped'
      ELSE 'completed' END
    WHEN {latest} = 0 OR m.run IS NULL THEN 'ready'
    WHEN {latest} = m.claim THEN 'running' WHEN {latest} = m.suspension THEN 'waiting'
    ELSE 'ready' END AS status,
  {d.time("s.ts")} AS scheduled_at, {d.time("m.claimed_at")} AS claimed_at,
  CASE WHEN {ended} THEN {d.time("z.ts")} END AS ended_at,
  CASE WHEN {ended} THEN (z.ts - s.ts) / 1000.0 END AS duration_ms,
  nullif({d.text("c.doc", "worker")}, '') AS worker, coalesce(m.claims, 0) AS claims,
  {d.number("l.doc", "total")} AS iterations,
  CASE WHEN f.seq IS NOT NULL THEN coalesce({d.number("f.doc", "failed")}, 0) END AS iterations_failed,
  CASE WHEN {ended} THEN {d.text("z.doc", "error", "kind")} END AS error_kind,
  CASE WHEN {ended} THEN {d.text("z.doc", "error", "message")} END AS error_message,
  CASE WHEN {ended} AND z.kind <> {error}
    THEN coalesce({d.json("z.doc", "result")}, {d.constant("null")}) END AS result
FROM {d.events(of.StepScheduled)} s JOIN {d.executions()} x ON x.id = s.execution_id
LEFT JOIN (
  SELECT execution_id, run, sum(CASE WHEN kind = {claim} THEN 1 ELSE 0 END) AS claims,
    min(CASE WHEN kind = {claim} THEN ts END) AS claimed_at, {last(of.TokenClaimed)} AS claim,
    {last(of.LeaseExpired, condition=of_runs)} AS lease, {last(of.RunSuspended)} AS suspension,
    {last(of.RunResumed)} AS resumption, {last(of.LoopStarted)} AS loop,
    {last(of.LoopStarted, of.LoopDone)} AS counted, {last(of.LoopDone)} AS looped,
    {last(*_ENDS)} AS ending, {last(*_REOPENINGS)} AS reopening
  FROM (
    SELECT execution_id, {self._run} AS run, seq, ts, kind, doc FROM {d.events(*marks)} v
    {" ".join(reopened)}
  ) k GROUP BY execution_id, run
) m ON m.execution_id = s.execution_id AND m.run = 'r' || s.seq
LEFT JOIN {d.events(*_ENDS)} z ON z.execution_id = s.execution_id AND z.seq = m.ending
LEFT JOIN {d.events(of.TokenClaimed)} c ON c.execution_id = s.execution_id AND c.seq = m.claim
LEFT JOIN {d.events(of.LoopStarted, of.LoopDone)} l ON l.execution_id = s.execution_id AND l.seq = m.counted
LEFT JOIN {d.events(of.LoopDone)} f ON f.execution_id = s.execution_id AND f.seq = m.looped"""

    def _no_loop(self, column: str) -> str:
        """Where a run has a loop, what waits is an iteration of it."""
        return f"CASE WHEN m.loop = 0 THEN {column} ELSE 0 END"

    @property
    def _attempts(self) -> str:
        """An attempt each, with the numbers of its last start and end."""
        d = self._d
        started, processed = kind_list(of.TaskStarted), kind_list(of.TaskProcessed)
        return f"""(
  SELECT execution_id, task_run_id, run, task, iteration, visit, attempt,
    min(CASE WHEN kind = {started} THEN ts END) AS started_at,
    max(CASE WHEN kind = {started} THEN seq END) AS start,
    max(CASE WHEN kind = {processed} THEN seq END) AS ending
  FROM (
    SELECT execution_id, seq, ts, kind, {self._visit} AS task_run_id, {self._run} AS run,
      {d.text("doc", "task")} AS task, coalesce({d.number("doc", "iteration")}, 0) AS iteration,
      coalesce({d.number("doc", "visit")}, 1) AS visit, coalesce({d.number("doc", "attempt")}, 1) AS attempt
    FROM {d.events(of.TaskStarted, of.TaskProcessed)} v
  ) k GROUP BY execution_id, task_run_id, run, task, iteration, visit, attempt
)"""

    def attempt(self) -> str:
        d = self._d
        error = ("outcome", "error")
        retryable = f"coalesce({d.truth('z.doc', *error, 'retryable')}, false)"
        return f"""
SELECT a.execution_id, x.version AS as_of, a.task_run_id, a.attempt,
  coalesce({d.text("z.doc", "outcome", "status")}, 'running') AS status,
  {d.time("a.started_at")} AS started_at, {d.time("z.ts")} AS ended_at,
  {d.real("z.doc", "outcome", "meta", "duration_ms")} AS duration_ms,
  coalesce({d.number("s.doc", "redelivery")}, 0) AS redeliveries,
  {d.text("z.doc", *error, "kind")} AS error_kind, {d.text("z.doc", *error, "message")} AS error_message,
  CASE WHEN {d.text("z.doc", *error, "kind")} IS NOT NULL THEN {retryable} END AS retryable
FROM {self._attempts} a JOIN {d.executions()} x ON x.id = a.execution_id
LEFT JOIN {d.events(of.TaskStarted)} s ON s.execution_id = a.execution_id AND s.seq = a.start
LEFT JOIN {d.events(of.TaskProcessed)} z ON z.execution_id = a.execution_id AND z.seq = a.ending"""

    def task_run(self) -> str:
        d = self._d
        return f"""
SELECT g.execution_id, x.version AS as_of, g.task_run_id, g.run AS step_run_id,
  {d.text("s.doc", "step")} AS step, g.task, k.kind, g.iteration, g.visit, g.attempts,
  coalesce({d.text("z.doc", "outcome", "status")}, 'running') AS status,
  CASE WHEN y.seq IS NOT NULL THEN coalesce({d.text("y.doc", "do")}, 'continue') END AS directive,
  {d.time("g.started_at")} AS started_at, {d.time("z.ts")} AS ended_at
FROM (
  SELECT execution_id, task_run_id, run, task, iteration, visit, count(*) AS attempts,
    max(CASE WHEN place = 1 THEN started_at END) AS started_at,
    max(CASE WHEN back = 1 THEN ending END) AS ending, max(ending) AS directed
  FROM (
    SELECT a.*, row_number() OVER (PARTITION BY execution_id, task_run_id ORDER BY attempt) AS place,
      row_number() OVER (PARTITION BY execution_id, task_run_id ORDER BY attempt DESC) AS back
    FROM {self._attempts} a
  ) b GROUP BY execution_id, task_run_id, run, task, iteration, visit
) g JOIN {d.executions()} x ON x.id = g.execution_id
LEFT JOIN {d.events(of.StepScheduled)} s ON s.execution_id = g.execution_id AND 'r' || s.seq = g.run
LEFT JOIN {d.events(of.TaskProcessed)} z ON z.execution_id = g.execution_id AND z.seq = g.ending
LEFT JOIN {d.events(of.TaskProcessed)} y ON y.execution_id = g.execution_id AND y.seq = g.directed
LEFT JOIN (
  SELECT playbook, {d.text("step", "name")} AS step, {d.text("t.value", 1, "label")} AS task,
    {d.text("t.value", 1, "kind")} AS kind
  FROM {self._steps} p, {d.each("t", "step", "tasks")} WHERE {d.index("t")} > 0
) k ON k.playbook = x.playbook AND k.step = {d.text("s.doc", "step")} AND k.task = g.task"""

    def result_ref(self) -> str:
        d = self._d
        return f"""
SELECT execution_id, seq, {d.text("reference", "key")} AS key,
  coalesce({d.text("reference", "store")}, '{OWN_STORE}') AS store, {d.number("reference", "size")} AS size,
  coalesce({d.text("reference", "media_type")}, '{JSON_MEDIA_TYPE}') AS media_type,
  {d.text("reference", "checksum")} AS checksum,
  {self._step_run_id} AS step_run_id, {self._task_run_id} AS task_run_id
FROM {d.references()} r
WHERE {d.text("reference", MARKER)} = 'ref' AND {d.json("reference", "size")} IS NOT NULL"""

    def manifest_ref(self) -> str:
        d = self._d
        return f"""
SELECT execution_id, seq, coalesce({d.text("reference", "store")}, '{OWN_STORE}') AS store,
  {d.number("reference", "total")} AS total, {d.number("reference", "size")} AS size,
  (SELECT count(*) FROM {d.each("c", "reference", "chunks")}) AS chunks,
  {self._step_run_id} AS step_run_id, {self._task_run_id} AS task_run_id
FROM {d.references()} r
WHERE {d.text("reference", MARKER)} = 'manifest'"""


def sqlite_views(file: str) -> str:
    """A script that attaches a store in a file, to be read only, and makes the views for one connection."""
    location = file.replace("%", "%25").replace("?", "%3f").replace("#", "%23").replace("'", "''")
    lines = [f"ATTACH 'file:{location}?mode=ro' AS noetl;"]
    # Temporary ones may ask another file, and nothing is written to the store, whose form they depend on.
    for name, query in view_queries(SqliteDialect("noetl")).items():
        lines.append(f"CREATE TEMP VIEW {name} AS{query};")
    return "\n".join(lines) + "\n"


def postgres_views(schema: str, views_schema: str) -> list[str]:
    """The statements that make the views of the store in one schema in another one."""
    queries = view_queries(PostgresDialect(schema))
    return [f"CREATE VIEW {views_schema}.{name} AS{query}" for name, query in queries.items()]
