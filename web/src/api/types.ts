// Made by scripts/docs from the types of the server. Do not edit.

/** How admission was decided the last time it was asked. */
export interface AdmissionCheck {
  token: string;
  seq: number;
  verdict: "admitted" | "denied" | "failed" | "parked" | "waiting";
  asked?: number;
  rules?: Condition[];
}

export interface ArcExplanation {
  step: string;
  condition: Condition;
  selected?: boolean;
}

/** One attempt of a task. `input` and `result` are cut to a readable length. */
export interface AttemptBar {
  task: string;
  kind: string;
  iteration: number;
  visit: number;
  attempt: number;
  seq: number;
  begin: number;
  ended_seq: number | null;
  end: number | null;
  status: "completed" | "failed" | "running";
  redelivered: number;
  directive: "" | "break" | "continue" | "fail" | "jump" | "retry";
  line: number | null;
  input: unknown;
  result: unknown;
  error: Record<string, unknown> | null;
}

/** Who did what to what, when and from where; `status` is how it was answered. */
export interface AuditItem {
  at: string;
  by: string;
  role: string;
  action: string;
  target: string;
  address: string;
  status: number;
}

/** The newest first. */
export interface AuditPage {
  audit: AuditItem[];
  next_cursor: string | null;
}

/** A verdict for each; none is done in a dry run. `more` says that others match: ask again. */
export interface BulkAnswer {
  executions: StartedExecution[];
  more: boolean;
}

/**
 * A `where` that leaves nothing out is refused, unless `all` says that this is meant.
 *
 * `reason` is for `cancel`, `signal` and `payload` are for `signal`.
 */
export interface BulkRequest {
  do: "cancel" | "retry" | "signal";
  where?: ExecutionFilter;
  all?: boolean;
  dry_run?: boolean;
  reason?: string;
  signal?: string;
  payload?: unknown;
}

/**
 * Who asks, as the server knows them.
 *
 * `may` has the names of the operations that the role allows, as the OpenAPI document calls them. `zone` is
 * the time zone of the server (IANA, `UTC` if it is not known). `session` says that they came by cookie.
 */
export interface CallerAnswer {
  name: string;
  role: "admin" | "author" | "operator" | "viewer" | "worker";
  may: string[];
  session: boolean;
  release: string;
  zone: string;
}

export interface CancelRequest {
  reason?: string;
}

/** That it was cancelled, and what was said about it. */
export interface Cancellation {
  seq: number;
  by?: string;
  reason?: string;
}

/** A run on the way to another one. `condition` is of the arc that it took; the last link has none. */
export interface ChainLink {
  step: string;
  run: string;
  seq: number;
  arc?: number | null;
  line?: number | null;
  condition?: Condition | null;
}

/** The SSE events `waits`, `workers` and `queue`: that changed, and is to be read again. */
export interface ChangeMessage {
  topic: "execution" | "executions" | "queue" | "waits" | "workers";
}

/** An execution that a task of a run started. */
export interface ChildBar {
  execution_id: string;
  path: string;
  status: string;
  task: string;
  iteration: number;
  begin: number;
  end: number | null;
}

/** What the step gives. */
export interface CompleteRequest {
  step: string;
  result?: unknown;
}

/** What may stand there, the likeliest first. It replaces the columns from `start` up to `end`. */
export interface CompletionAnswer {
  line: number;
  start: number;
  end: number;
  items: CompletionItem[];
}

/** `insert` takes the place of what is written; `detail` is short, `doc` a sentence or two. */
export interface CompletionItem {
  label: string;
  kind: "function" | "key" | "kind" | "name" | "namespace" | "step" | "task" | "value";
  insert: string;
  detail: string;
  doc: string;
}

/**
 * A text that may be wrong at this moment, and a place in it: `line` and `column` from 1.
 *
 * `column` is that of the character behind the cursor, counted in characters (code points).
 */
export interface CompletionRequest {
  text: string;
  line: number;
  column: number;
}

/** A condition and what it read. `holds` is None if it was not asked, or raised `error`. */
export interface Condition {
  text: string;
  line: number;
  holds?: boolean | null;
  reads?: PathRead[];
  error?: string;
}

/** The only time that the token itself is shown. */
export interface CreatedToken {
  name: string;
  role: string;
  created_at: string;
  created_by: string;
  expires_at: string | null;
  revoked_at: string | null;
  valid: boolean;
  token: string;
}

export interface CredentialBody {
  name: string;
  kind?: string;
  fields: Record<string, unknown>;
}

/** Secrets show as `***`. */
export interface CredentialDetail {
  name: string;
  kind: string;
  created_at: string;
  updated_at: string;
  fields: Record<string, unknown>;
}

export interface CredentialItem {
  name: string;
  kind: string;
  created_at: string;
  updated_at: string;
}

export interface CredentialList {
  credentials: CredentialItem[];
}

/** By the newest versions of playbooks. `stored` is false if there is no credential of this name. */
export interface CredentialUsage {
  name: string;
  stored: boolean;
  uses: CredentialUse[];
}

export interface CredentialUsageList {
  usage: CredentialUsage[];
}

/** A task of a registered playbook that names a credential. */
export interface CredentialUse {
  path: string;
  version: number;
  step: string;
  task: string;
}

export interface DeletedPlaybook {
  path: string;
  versions: number[];
}

export interface DiffSide {
  execution_id: string;
  playbook: string;
  version: string | null;
  hash: string;
  status: string;
  events: number;
  duration_ms: number;
  started_at: string;
  forked_from: string | null;
}

/**
 * An event that would not be recorded like this. `what` is the place in it, empty for all of it.
 *
 * `decided` is what stands there now; where `what` is empty, the event that belongs there, or None.
 */
export interface Difference {
  seq: number;
  event: string;
  what?: string;
  recorded?: unknown;
  decided?: unknown;
  why: string;
  step?: string;
  line?: number | null;
  column?: number | null;
}

/** A token that ended without a run, why, and how its rules stood. */
export interface DiscardedToken {
  arrival: TokenArrival;
  step: string;
  line: number;
  seq: number;
  reason: string;
  rules?: Condition[];
}

/** The first event that is not the same in both. A side without one has nothing to set against it. */
export interface Divergence {
  what: string;
  path: string;
  a: EventSide | null;
  b: EventSide | null;
}

/** Something wrong with a playbook, as `noetl validate` says it. */
export interface DocumentProblem {
  file: string;
  line: number;
  column: number;
  code: string;
  severity: "error" | "warning";
  message: string;
  hint: string;
}

/** The picture of a document that is not registered; none if it has errors. */
export interface DraftNet {
  net: NetAnswer | null;
  problems: DocumentProblem[];
}

/** How many worker processes were told. */
export interface DrainAnswer {
  draining: number;
}

/** Nothing more is to be said. */
export interface EmptyRequest {

}

/** `expr` with or without its `{{ }}`, after event `at`; with `step`, as the last run of that sees it. */
export interface EvaluateRequest {
  expr: string;
  at?: number;
  step?: string;
  iteration?: number | null;
}

/** The value that an expression had. `run` is the one whose names it read; `reads` are cut. */
export interface EvaluatedExpression {
  execution_id: string;
  at: number;
  step: string | null;
  run: string | null;
  value: unknown;
  cut: boolean;
  reads: PathRead[];
  names: string[];
}

/** Envelopes, in order. `next_cursor` is what `after` takes for the next page. */
export interface EventPage {
  events: Record<string, unknown>[];
  next_cursor: string | null;
}

/** An event of one of the two; `value` is what differs in it, cut to a readable length. */
export interface EventSide {
  seq: number;
  name: string;
  step: string | null;
  run: string | null;
  value: unknown;
}

/** An execution as it is. Large values are references. `marking` has tokens and runs by step. */
export interface ExecutionDetail {
  execution_id: string;
  playbook: string;
  version: string | null;
  status: string;
  result: unknown;
  ctx: Record<string, unknown>;
  error: Record<string, unknown> | null;
  duration_ms: number;
  discarded: Record<string, string>[];
  waiting: Record<string, string>[];
  steps: Record<string, Record<string, unknown>>;
  warnings: DocumentProblem[];
  forked_from: string | null;
  forked_at: number | null;
  marking: Record<string, Record<string, number>>;
  workload: Record<string, unknown>;
  labels: Record<string, string>;
  priority: number;
  hash: string;
  file: string | null;
  registered: string | null;
  events: number;
  started_at: string;
  ended_at: string | null;
  parent: string | null;
  requested_by: string | null;
}

/** What two executions have in common, and where they differ. Lists are in the order of the playbook. */
export interface ExecutionDiff {
  a: DiffSide;
  b: DiffSide;
  same_playbook: boolean;
  common: number;
  divergence: Divergence | null;
  steps: StepDiff[];
  guards: GuardDiff[];
  values: ValueDiff[];
}

/**
 * All that there is to see of an execution in one document, to be looked at without a server.
 *
 * `events` are envelopes, the first 10,000; `lines` what its tasks and its children's wrote, likewise.
 */
export interface ExecutionExport {
  exported_at: string;
  execution: ExecutionDetail;
  source: string;
  index: HistoryIndex;
  runs: RunPage;
  explanation: Explanation;
  events: Record<string, unknown>[];
  lines: Record<string, unknown>[];
}

/**
 * Those for which everything given holds. `path` is the beginning of theirs.
 *
 * They began at `since` or later, and before `until`. `version` is a number of the catalog, and wants the
 * whole `path`. `q` stands in id, path, labels or the message of the error. `roots` leaves out what others
 * started.
 */
export interface ExecutionFilter {
  status?: "cancelled" | "completed" | "failed" | "paused" | "running";
  path?: string;
  labels?: Record<string, string>;
  since?: string;
  until?: string;
  version?: number | null;
  error_kind?: string;
  q?: string;
  roots?: boolean;
}

/** An execution as lists have it. */
export interface ExecutionItem {
  execution_id: string;
  status: string;
  path: string;
  started_at: string;
  ended_at: string | null;
  duration_ms: number;
  labels: Record<string, string>;
  priority: number;
  parent: string | null;
  forked_from: string | null;
  events: number;
}

/** The newest first. */
export interface ExecutionItems {
  executions: ExecutionItem[];
  next_cursor: string | null;
}

/** The SSE event `execution`: new envelopes of one of the executions of the topics, in order. */
export interface ExecutionMessage {
  execution_id: string;
  events: Record<string, unknown>[];
}

/** The SSE event `executions`: executions that are new or changed, as they are now. */
export interface ExecutionsMessage {
  executions: ExecutionItem[];
}

/** What `explain` tells: the runs in the order in which they began, and what is open now. */
export interface Explanation {
  execution_id: string;
  status: string;
  version: number;
  error?: Record<string, unknown> | null;
  runs?: RunExplanation[];
  parked?: ParkedToken[];
  joins?: WaitingJoin[];
  discarded?: DiscardedToken[];
  failure?: FirstFailure | null;
  cancelled?: Cancellation | null;
}

/** Of an execution, then of the child that failed it, down to the lowest; none if nothing failed. */
export interface FailureChain {
  failures: FailureReport[];
}

/** Failed executions of a playbook with the same error, of the last 24 hours; `newest` is one of them. */
export interface FailureGroup {
  path: string;
  step: string;
  kind: string;
  message: string;
  count: number;
  newest: string;
  first_at: string;
  last_at: string;
}

/** The line that a failure is about: of the playbook, or of a script that a task ran. */
export interface FailureLocation {
  file: string;
  line: number;
  column: number;
  text: string;
  in_playbook: boolean;
}

/**
 * Everything known of how one execution failed. Of one that was cancelled `kind` is null.
 *
 * `cause` is the kind of what failed, of a loop that of its iteration; it is empty if a retry alone may
 * help. `document` names the playbook as problems do, `file` where it was read.
 */
export interface FailureReport {
  execution_id: string;
  playbook: string;
  status: string;
  step: string | null;
  task: string | null;
  attempt: number | null;
  iteration: number | null;
  kind: string | null;
  message: string;
  cause: string;
  location: FailureLocation | null;
  input: unknown;
  printed: string[];
  traceback: string;
  logged: boolean;
  retriable: boolean;
  document: string;
  file: string;
}

/** Where events are published to. `lag` is for how many seconds the oldest waits, `problem` why. */
export interface FeedStatus {
  stream: string;
  lag: number;
  problem: string | null;
}

/** The first failure that nobody looked at. */
export interface FirstFailure {
  run: string;
  step: string;
  line: number;
  column: number;
  error: Record<string, unknown>;
  task?: string;
  iteration?: number | null;
  attempt?: number;
  input?: unknown;
}

/**
 * What a fork would do; nothing is recorded.
 *
 * `repeats` are the tasks of runs that go on and those that began after `cut`, which run again if the fork
 * comes to them; those that change something first.
 */
export interface ForkPreview {
  execution_id: string;
  at: number;
  cut: number;
  events: number;
  kept: KeptStep[];
  open: OpenRun[];
  tokens: Record<string, number>;
  repeats: RepeatedTask[];
}

/** A copy of the history up to event `at` goes on as a new execution, with these values laid over. */
export interface ForkRequestBody {
  playbook?: string | Record<string, unknown> | null;
  version?: number | null;
  dialect?: "canonical" | "draft" | "in_use" | null;
  at: number;
  workload?: Record<string, unknown>;
  ctx?: Record<string, unknown>;
}

/**
 * A guard that came out differently: of an arc, or of admission (`arc` is then null).
 *
 * `occurrence` counts the runs of the step from 1.
 */
export interface GuardDiff {
  step: string;
  arc: string | null;
  occurrence: number;
  a: Condition | null;
  b: Condition | null;
}

export interface HealthAnswer {
  status?: "ok";
}

/** How many iterations ended in each stretch of time; `bucket` is how long one is. */
export interface HeatStrip {
  begin: number;
  bucket: number;
  succeeded: number[];
  failed: number[];
}

/**
 * The events above `after` as columns, one entry in each for an event, and what each does to the marking.
 *
 * `steps` are all of the playbook, in its order, and the same in every answer until it goes on with another
 * document. `runs` are those that began in these events: append them to those of earlier answers.
 */
export interface HistoryIndex {
  execution_id: string;
  status: string;
  hash: string;
  after: number;
  last: number;
  base: number;
  names: string[];
  steps: string[];
  places: ("cancelled" | "claimed" | "done" | "ended" | "enqueued" | "failed" | "joined" | "parked" | "ready" | "skipped" | "suspended" | "waiting")[];
  runs: string[];
  time: number[];
  name: number[];
  step: number[];
  run: number[];
  arc: number[];
  marking: number[][];
  errors: number[];
  cuts: number[];
}

/** Executions that began in the hour from `at`, by what became of them; `running` has the paused ones. */
export interface HourCount {
  at: string;
  running: number;
  completed: number;
  failed: number;
  cancelled: number;
}

/**
 * An arc on the way to a step, and what became of it: of several runs, in the last that took it.
 *
 * `through` are the steps behind it that nothing came to, up to the one that is explained.
 */
export interface IncomingArc {
  source: string;
  arc: number;
  target: string;
  line: number;
  text: string;
  verdict: "failed" | "not_asked" | "not_reached" | "not_taken" | "taken";
  asked?: number;
  taken?: number;
  run?: string;
  seq?: number;
  condition?: Condition | null;
  through?: string[];
}

export interface IterationBar {
  index: number;
  begin: number;
  end: number | null;
  status: "completed" | "failed" | "running";
}

/** A step whose runs are taken over as they ended. */
export interface KeptStep {
  step: string;
  runs: number;
}

/**
 * What tasks of an execution and of its children wrote, in order of time.
 *
 * `last` is what `after` takes for what comes later, `next_cursor` the same if there is more already.
 */
export interface LogPage {
  lines: Record<string, unknown>[];
  next_cursor: string | null;
  last: string;
}

/** `path` is to be opened at the address of the server, once, before `expires_at`. */
export interface LoginLink {
  path: string;
  expires_at: string;
}

export interface LoopBar {
  total: number;
  begun: number;
  succeeded: number;
  failed: number;
  open: number;
  heat: HeatStrip | null;
}

export interface LoopExplanation {
  total: number;
  max_in_flight: number;
  succeeded?: number;
  failed?: number;
  open?: number;
  shards?: ShardExplanation[];
}

/** A worker that went silent in the last 24 hours while it had runs, and has not come back. */
export interface LostWorker {
  worker: string;
  lost_at: string;
  runs: number;
}

/** A rule of a task's policy that decided; without `line` none did. `else` has the text `else`. */
export interface MatchedRule {
  do: string;
  times: number;
  text?: string;
  line?: number | null;
}

/** The picture that `noetl graph` draws, as numbers. Boxes and routes are in the order of the document. */
export interface NetAnswer {
  hash: string;
  title: string;
  path: string;
  entry: string;
  width: number;
  height: number;
  boxes: NetBox[];
  routes: NetRoute[];
}

/** What decides how a pipeline runs: its gate, its join, its loop. */
export interface NetBadge {
  kind: "admit" | "join" | "loop";
  text: string;
  detail: string;
}

/**
 * A step as a card, and what is on it. `line` is where it stands in the document.
 *
 * `inclusive`: more than one arc, and every one whose guard holds is taken. `rule` is the height of the line
 * above the pipeline, `dots` are the heights of its tasks; `stack` is what a second card behind it takes of
 * its size, at the right and below.
 */
export interface NetBox {
  step: string;
  desc: string;
  line: number;
  roles: ("end" | "final" | "start")[];
  badges: NetBadge[];
  tasks: NetTask[];
  inclusive: boolean;
  x: number;
  y: number;
  width: number;
  height: number;
  stack: number;
  texts: NetText[];
  icons: NetIcon[];
  pills: NetPill[];
  rule: number | null;
  dots: number[];
}

/** A small drawing on a card, about 11 pixels wide; `x` and `y` are its middle. */
export interface NetIcon {
  x: number;
  y: number;
  kind: "admit" | "break" | "join" | "jump" | "loop" | "retry";
}

/** Where the label of a route is, and its lines of text, shortened to fit. */
export interface NetLabel {
  x: number;
  y: number;
  width: number;
  height: number;
  lines: string[];
}

/** What the policy of a task may do besides going on. */
export interface NetMark {
  kind: "break" | "jump" | "retry";
  text: string;
}

/** A rounded field with a word on a card, 16 pixels high; `y` is its middle. */
export interface NetPill {
  x: number;
  y: number;
  width: number;
  text: string;
}

/**
 * An arc. `number` counts the arcs of its step from 0, as events do.
 *
 * `guard` is the whole condition, `text` what is left of it beside the `mark`. `order` is empty for an only
 * arc, else its number in an exclusive router, `+` in an inclusive one. `merges` is the point on it from
 * which an earlier route runs the rest of the way.
 */
export interface NetRoute {
  source: string;
  target: string;
  number: number;
  guard: string;
  text: string;
  mark: "" | "done" | "failed";
  order: string;
  failure: boolean;
  points: [number, number][];
  merges: [number, number] | null;
  label: NetLabel | null;
}

/** A task of a step's pipeline; `line` is where it stands in the document. */
export interface NetTask {
  label: string;
  kind: string;
  marks: NetMark[];
  line: number;
}

/** A line of text on a card, from the card's corner; `y` is its baseline. */
export interface NetText {
  x: number;
  y: number;
  text: string;
  style: "badge" | "desc" | "detail" | "kind" | "mark" | "name" | "note" | "task";
}

/** A run that goes on: where it stands, and how many iterations of it are open. */
export interface OpenRun {
  run: string;
  step: string;
  task: string | null;
  iterations: number;
}

/** `recorded` is false if the process that runs the execution has not read the command yet. */
export interface OperationAnswer {
  execution_id: string;
  status: string;
  recorded: boolean;
  steps?: string[];
}

/**
 * What needs somebody, what runs, and the last 24 hours.
 *
 * `failures` are grouped by error, the most frequent first; `waits` are the oldest, `waiting` counts all of
 * them. `executions` are the newest that run, `running` and `paused` count all. `stuck` have a run that no
 * worker can take. `playbooks` is how many are registered.
 */
export interface Overview {
  failures: FailureGroup[];
  waits: WaitItem[];
  waiting: number;
  lost_workers: LostWorker[];
  stuck: ExecutionItem[];
  executions: ExecutionItem[];
  running: number;
  paused: number;
  hours: HourCount[];
  playbooks: number;
}

/** A token that is kept before its step, and its rules with the values as they are now. */
export interface ParkedToken {
  arrival: TokenArrival;
  step: string;
  line: number;
  mode: "parked" | "waiting";
  seq: number;
  until?: number | null;
  rules?: Condition[];
  signals?: string[];
}

/** One path that an expression reads, and what stood there. `missing`: nothing did. */
export interface PathRead {
  path: string;
  value?: unknown;
  missing?: boolean;
}

/**
 * What a start would do; nothing was recorded. `error` says why it would be refused, if so.
 *
 * `workload` is merged with the defaults of the document. `waiting` says what would wait, and for what.
 */
export interface PlanAnswer {
  ok: boolean;
  error: ProblemDocument | null;
  path: string;
  version: number | null;
  hash: string;
  entry: string;
  workload: Record<string, unknown>;
  ctx: Record<string, unknown>;
  credentials: string[];
  waiting: PlannedTask[];
  problems: DocumentProblem[];
}

/** A task that cannot run as things are, and why. */
export interface PlannedTask {
  step: string;
  task: string;
  kind: string;
  reason: string;
  hint: string;
}

/** The newest version of each. */
export interface PlaybookList {
  playbooks: PlaybookVersion[];
  next_cursor: string | null;
}

/** Of the newest executions of a playbook. `ended` counts them by how they ended; milliseconds. */
export interface PlaybookStatistics {
  path: string;
  executions: ExecutionItem[];
  ended: Record<string, number>;
  median_ms: number;
  p95_ms: number;
  steps: StepStatistics[];
}

/** `source` is what was registered, `canonical` what executions run. */
export interface PlaybookText {
  path: string;
  version: number;
  hash: string;
  label: string;
  dialect: string;
  created_at: string;
  created_by: string;
  source: string;
  canonical: string;
}

/** One version of a registered playbook. `label` is the `metadata.version` that its document has. */
export interface PlaybookVersion {
  path: string;
  version: number;
  hash: string;
  label: string;
  dialect: string;
  created_at: string;
  created_by: string;
}

/** A pool that has workers, or runs that wait. `problem` says why one of those cannot be taken, if so. */
export interface PoolItem {
  pool: string;
  depth: number;
  age: number;
  workers: number;
  slots: number;
  claimed: number;
  kinds: string[];
  problem: string | null;
}

export interface PoolList {
  pools: PoolItem[];
}

/** Runs that are ready and not claimed: how many, and for how many seconds the oldest. */
export interface PoolStatus {
  pool: string;
  depth: number;
  age: number;
}

/**
 * RFC 9457. `pointer` leads to what is wrong in the body.
 *
 * `execution_id` is of a request that was recorded; of a conflict, that of who has the idempotency key.
 */
export interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  code: "conflict" | "forbidden" | "invalid_playbook" | "invalid_request" | "lost" | "method_not_allowed" | "not_found" | "overloaded" | "refused" | "store_unavailable" | "too_large" | "unauthenticated" | "unsupported_protocol";
  detail?: string;
  hint?: string;
  pointer?: string;
  execution_id?: string;
  problems?: DocumentProblem[];
}

export interface QueueAnswer {
  pools: QueuePool[];
}

/** A pool and its oldest runs that are ready. */
export interface QueuePool {
  pool: string;
  depth: number;
  age: number;
  workers: number;
  slots: number;
  claimed: number;
  kinds: string[];
  problem: string | null;
  runs: QueuedRun[];
}

/** A run that is ready; `age` is in seconds. `reason` says why no worker has it. */
export interface QueuedRun {
  execution_id: string;
  path: string;
  run: string;
  step: string | null;
  kinds: string[];
  priority: number;
  age: number;
  reason: string;
}

/** A step from which something can still come. */
export interface ReachingStep {
  step: string;
  tokens?: number;
  runs?: number;
  failed?: number;
}

/**
 * The replica that answers lists and histories.
 *
 * `lag` is for how many seconds the oldest event waits that it lacks; null if it cannot be asked: then
 * `problem` says why.
 */
export interface ReadStoreStatus {
  store: string;
  lag: number | null;
  problem: string | null;
}

/** Only the loop at this `step`, if one is named. */
export interface RedriveRequestBody {
  playbook?: string | Record<string, unknown> | null;
  version?: number | null;
  dialect?: "canonical" | "draft" | "in_use" | null;
  step?: string;
}

/** `created` is false if the newest version has the same content already. */
export interface RegisteredPlaybook {
  path: string;
  version: number;
  hash: string;
  label: string;
  dialect: string;
  created_at: string;
  created_by: string;
  created: boolean;
  problems: DocumentProblem[];
}

/** What a retry or a redrive would open again; nothing is recorded. */
export interface ReopenPreview {
  execution_id: string;
  runs: OpenRun[];
  steps: string[];
  superseded: string[];
  iterations: number;
  repeats: RepeatedTask[];
}

/** A task whose attempts begin again, or may: how often it has begun, and whether it changes something. */
export interface RepeatedTask {
  step: string;
  task: string;
  kind: string;
  line: number;
  effect: "none" | "unknown" | "write";
  begun: number;
}

/**
 * Some of the rows of a stored value, cut to a readable length.
 *
 * Of a list its elements, of a table mappings, of a mapping `{key, value}`, of a text its lines; anything
 * else is one row.
 */
export interface ResultRows {
  type: "list" | "mapping" | "table" | "text" | "value";
  columns: string[];
  offset: number;
  total: number | null;
  rows: unknown[];
  next_offset: number | null;
}

/** An attempt that was repeated, and why. */
export interface RetriedAttempt {
  seq: number;
  attempt: number;
  iteration?: number;
  line?: number | null;
  error?: Record<string, unknown> | null;
  result?: unknown;
  next_at?: number | null;
}

/** With a repaired document if one is given: inline, or a version of the registered playbook. */
export interface RetryRequestBody {
  playbook?: string | Record<string, unknown> | null;
  version?: number | null;
  dialect?: "canonical" | "draft" | "in_use" | null;
}

/** Where the end of a run led. `handled` is false where nobody looked at its failure. */
export interface RoutingExplanation {
  seq: number;
  event: string;
  arcs?: ArcExplanation[];
  handled?: boolean;
  error?: Record<string, unknown> | null;
}

/**
 * A step run in time. `attempts` are those of all its tasks and iterations; `worked` is a duration.
 *
 * `waits` and `children` are the first hundred.
 */
export interface RunBar {
  run: string;
  step: string;
  line: number;
  seq: number;
  begin: number;
  claimed: number | null;
  end: number | null;
  ended_seq: number | null;
  status: "cancelled" | "completed" | "failed" | "ready" | "running" | "skipped" | "waiting";
  attempts: number;
  failed_attempts: number;
  worked: number;
  waits: WaitSpan[];
  loop: LoopBar | null;
  children: ChildBar[];
  error: Record<string, unknown> | null;
}

/**
 * A run with a page of its iterations, in the order in which they began, and their attempts.
 *
 * A run without a loop has one iteration.
 */
export interface RunDetail {
  execution_id: string;
  at: number;
  bar: RunBar;
  iterations: IterationBar[];
  attempts: AttemptBar[];
  next_cursor: string | null;
}

/** A run of a step from the tokens that brought it to the arcs that it fired. */
export interface RunExplanation {
  run: string;
  step: string;
  line: number;
  seq: number;
  began_at: number;
  phase: string;
  arrivals?: TokenArrival[];
  gates?: AdmissionCheck[];
  args?: Record<string, unknown>;
  final?: boolean;
  claims?: number;
  lost?: number;
  worked?: number;
  tasks?: TaskExplanation[];
  loop?: LoopExplanation | null;
  waits?: RunWait[];
  event?: string;
  ended_seq?: number;
  ended_at?: number;
  result?: unknown;
  error?: Record<string, unknown> | null;
  routing?: RoutingExplanation | null;
}

/** Runs in the order in which they began, at event `at`. `idle`: when nothing of it was worked on. */
export interface RunPage {
  execution_id: string;
  at: number;
  begin: number;
  end: number | null;
  now: number;
  idle: [number, number][];
  runs: RunBar[];
  next_cursor: string | null;
}

/** What a run, or one of its iterations, waits for. `pause`: that the execution is resumed. */
export interface RunWait {
  reason: "child" | "pause" | "retry" | "signal" | "wait";
  iteration?: number;
  until?: number | null;
  signal?: string;
  child?: string;
}

/** `problem` says why it is not ready, null if it is. Of `workers` it has none if it runs tasks itself. */
export interface ServerStatus {
  release: string;
  started_at: string;
  uptime: number;
  store: string;
  ready: boolean;
  problem: string | null;
  executions: number;
  workers: number;
  slots: number;
  claimed: number;
  pools: PoolStatus[];
  stuck: number;
  last_commit_at: string | null;
  feed?: FeedStatus | null;
  read_store?: ReadStoreStatus | null;
}

/** A token, or the code of a login link, which is good for one time. */
export interface SessionRequest {
  token?: string | null;
  code?: string | null;
}

/** Iterations `first` to `last`, of which `begun` have begun; `worker` has them, or had them last. */
export interface ShardExplanation {
  first: number;
  last: number;
  begun: number;
  phase: string;
  worker?: string;
}

/** To the task run `wait`, if one is named; else to the oldest that waits for it and that it fits. */
export interface SignalRequest {
  name: string;
  payload?: unknown;
  wait?: string;
}

/** The step where something is stuck, or failed. */
export interface SkipRequest {
  step: string;
}

/**
 * What to run: a registered playbook by `path`, or by its hash as `playbook_id`, or an inline `playbook`.
 *
 * An inline document is text (YAML or JSON) or the document itself; it needs the role `author`.
 */
export interface StartExecution {
  path?: string | null;
  playbook_id?: string | null;
  playbook?: string | Record<string, unknown> | null;
  version?: number | null;
  workload?: Record<string, unknown>;
  ctx?: Record<string, unknown>;
  labels?: Record<string, string>;
  idempotency_key?: string;
  dialect?: "canonical" | "draft" | "in_use" | null;
  timeout?: number | null;
  priority?: number;
}

export interface StartExecutions {
  executions: StartExecution[];
}

/** A verdict for each request, in their order. */
export interface StartedBatch {
  executions: StartedExecution[];
}

/** `error` says why a request was refused; it has no `execution_id` if it was not recorded. */
export interface StartedExecution {
  execution_id?: string;
  status?: string;
  error?: ProblemDocument | null;
}

/** A step that came to something in one of the two. `differs` looks at status, runs, result and error. */
export interface StepDiff {
  step: string;
  differs: boolean;
  status: [string | null, string | null];
  runs: [number, number];
  worked: [number, number];
  result: [unknown, unknown];
  error: [Record<string, unknown> | null, Record<string, unknown> | null];
}

/** Why a step ran, runs, waits, or was not reached. */
export interface StepExplanation {
  execution_id: string;
  status: string;
  version: number;
  step: string;
  line: number;
  verdict: "denied" | "failed" | "not_reached" | "ran" | "running" | "waiting";
  reason: string;
  chain?: ChainLink[];
  arcs?: IncomingArc[];
  stopped_at?: IncomingArc[];
  run_count?: number;
  runs?: RunExplanation[];
  parked?: ParkedToken[];
  joins?: WaitingJoin[];
  discarded?: DiscardedToken[];
}

/** The ended runs of a step in the executions that were looked at; milliseconds. */
export interface StepStatistics {
  step: string;
  runs: number;
  failed: number;
  median_ms: number;
  p95_ms: number;
  most_ms: number;
}

/** A task in all its iterations. `retries` are the first hundred of `retried`. */
export interface TaskExplanation {
  task: string;
  kind: string;
  line: number;
  attempts?: number;
  failed?: number;
  redelivered?: number;
  open?: number;
  retried?: number;
  rules?: MatchedRule[];
  retries?: RetriedAttempt[];
}

/** A token, and what brought it: an arc of a run, or the beginning (`step` is then None). */
export interface TokenArrival {
  token: string;
  seq: number;
  step?: string | null;
  run?: string;
  arc?: number | null;
  line?: number | null;
  args?: Record<string, unknown>;
}

export interface TokenItem {
  name: string;
  role: string;
  created_at: string;
  created_by: string;
  expires_at: string | null;
  revoked_at: string | null;
  valid: boolean;
}

export interface TokenList {
  tokens: TokenItem[];
}

/** `expires_in` is seconds from now; without it the token is valid until it is revoked. */
export interface TokenRequest {
  name: string;
  role: "admin" | "author" | "operator" | "viewer" | "worker";
  expires_in?: number | null;
}

/** An input or a knob of a kind. `default` is JSON, empty if there is none. */
export interface ToolField {
  name: string;
  type: string;
  required: boolean;
  default: string;
  description: string;
}

/** A kind of task. `knobs` stand under the task's `spec`; `workers` counts those that can run it. */
export interface ToolItem {
  kind: string;
  summary: string;
  result: string;
  example: string;
  inputs: ToolField[];
  knobs: ToolField[];
  workers: number;
}

export interface ToolList {
  tools: ToolItem[];
}

export interface ValidationAnswer {
  ok: boolean;
  problems: DocumentProblem[];
}

/** A value of workload, ctx or the result that differs; `missing` says in which it is not there. */
export interface ValueDiff {
  path: string;
  a: unknown;
  b: unknown;
  missing: "" | "a" | "b";
}

/** What deciding an execution again has shown; `ok` if all came out the same. */
export interface VerificationAnswer {
  ok: boolean;
  execution_id: string;
  events: number;
  verdicts: number;
  unjudged: number;
  differences: Difference[];
  notes: string[];
}

/** The newest first. */
export interface VersionList {
  versions: PlaybookVersion[];
}

/**
 * What waits for a person: a task, which an answer names by `wait`, or a gate, and `wait` is its token.
 *
 * A gate opens when one of its `rules` lets the token in; `signals` are those that they read, `signal` the
 * first that has not come, empty if its name is computed. It asks nothing: whoever may signal may answer.
 * Of a task, `assignee` has the names of tokens that may answer; empty: every operator. `answerable` says
 * whether the caller may. `schema` is what an answer must fit, null for anything. `until` is when it gives
 * up, if so.
 */
export interface WaitItem {
  kind: "gate" | "task";
  wait: string;
  execution_id: string;
  path: string;
  step: string;
  task: string;
  iteration: number | null;
  signal: string;
  title: string;
  description: string;
  schema: Record<string, unknown> | null;
  assignee: string[];
  answerable: boolean;
  since: string;
  until: string | null;
  labels: Record<string, string>;
  signals: string[];
  rules: Condition[];
}

/** The oldest first. */
export interface WaitList {
  waits: WaitItem[];
  next_cursor: string | null;
}

/** When nobody had a run, and why. */
export interface WaitSpan {
  begin: number;
  end: number | null;
  reason: "child" | "pause" | "ready" | "retry" | "signal" | "wait";
}

/** A join that holds tokens. `needed` is None where it waits until nothing else can come. */
export interface WaitingJoin {
  step: string;
  line: number;
  mode: "all" | "any" | "count";
  arrived: number;
  needed?: number | null;
  absorbing?: boolean;
  arrivals?: TokenArrival[];
  waits_for?: ReachingStep[];
}

/**
 * A worker process. `heartbeat_age` is in seconds; `token` is the name of the one it came with.
 *
 * One that drains has no slots: it ends when its runs have.
 */
export interface WorkerItem {
  session: string;
  worker: string;
  release: string;
  token: string;
  pools: string[];
  kinds: string[];
  slots: number;
  heartbeat_age: number;
  runs: WorkerRun[];
}

export interface WorkerList {
  workers: WorkerItem[];
}

/** A run that a worker has claimed. */
export interface WorkerRun {
  execution_id: string;
  run: string;
  step: string | null;
}

/** What each endpoint takes and gives, by the name that `CallerAnswer.may` has. */
export interface Operations {
  /** The picture of a registered playbook, `PATH@VERSION` or the newest, as `noetl graph` draws it. */
  read_net: {
    method: "GET";
    path: "/api/catalog/{path}/net";
    query: Record<string, never>;
    body: undefined;
    answer: NetAnswer;
  };
  /** The newest executions of a playbook, how they ended, and how long its steps took. */
  read_statistics: {
    method: "GET";
    path: "/api/catalog/{path}/statistics";
    query: Record<string, never>;
    body: undefined;
    answer: PlaybookStatistics;
  };
  /** Register a playbook: the next version, or the newest if nothing has changed. */
  register_playbook: {
    method: "POST";
    path: "/api/catalog";
    query: { dialect?: "canonical" | "draft" | "in_use" | null; file?: string; };
    body: string | Record<string, unknown>;
    answer: RegisteredPlaybook;
  };
  /** The newest version of each registered playbook, by path. */
  list_playbooks: {
    method: "GET";
    path: "/api/catalog";
    query: { prefix?: string; cursor?: string; limit?: number; };
    body: undefined;
    answer: PlaybookList;
  };
  /** All versions of a playbook, the newest first. */
  list_versions: {
    method: "GET";
    path: "/api/catalog/{path}/versions";
    query: Record<string, never>;
    body: undefined;
    answer: VersionList;
  };
  /** A registered playbook: `PATH@VERSION`, or the newest. `PATH@latest` is the newest, too, also where the path ends in `/versions`, `/statistics` or `/net`. */
  read_playbook: {
    method: "GET";
    path: "/api/catalog/{path}";
    query: Record<string, never>;
    body: undefined;
    answer: PlaybookText;
  };
  /** Delete a version or all of them. Refused while executions run it. */
  delete_playbook: {
    method: "DELETE";
    path: "/api/catalog/{path}";
    query: Record<string, never>;
    body: undefined;
    answer: DeletedPlaybook;
  };
  /** All problems of a document. */
  validate: {
    method: "POST";
    path: "/api/validate";
    query: { dialect?: "canonical" | "draft" | "in_use" | null; file?: string; };
    body: string | Record<string, unknown>;
    answer: ValidationAnswer;
  };
  /** The picture of a document, as `noetl graph` draws it, and all its problems. */
  draw_net: {
    method: "POST";
    path: "/api/net";
    query: { dialect?: "canonical" | "draft" | "in_use" | null; file?: string; };
    body: string | Record<string, unknown>;
    answer: DraftNet;
  };
  /** What may be written at a place of a document, which may be wrong at this moment. */
  complete_text: {
    method: "POST";
    path: "/api/complete";
    query: Record<string, never>;
    body: CompletionRequest;
    answer: CompletionAnswer;
  };
  /** The kinds of tasks, with their inputs, and how many workers can run each. */
  list_tools: {
    method: "GET";
    path: "/api/tools";
    query: Record<string, never>;
    body: undefined;
    answer: ToolList;
  };
  /** The JSON Schema of playbooks, as `noetl schema` prints it. */
  read_schema: {
    method: "GET";
    path: "/api/schema";
    query: Record<string, never>;
    body: undefined;
    answer: Record<string, unknown>;
  };
  /** Start an execution, with `wait` until its end, or up to 1,000 with a verdict for each; `dry_run` says what one would do. */
  start_execution: {
    method: "POST";
    path: "/api/executions";
    query: { wait?: number; dry_run?: boolean; };
    body: StartExecution | StartExecutions;
    answer: StartedExecution | StartedBatch | ExecutionDetail | PlanAnswer;
  };
  /** Executions, the newest first. */
  list_executions: {
    method: "GET";
    path: "/api/executions";
    query: { id?: string; status?: ("cancelled" | "completed" | "failed" | "paused" | "running")[]; path?: string; label?: string[]; since?: string; until?: string; version?: number | null; error_kind?: string; q?: string; parent?: string; roots?: boolean; cursor?: string; limit?: number; };
    body: undefined;
    answer: ExecutionItems;
  };
  /** An execution as it is; with `wait`, at its end. */
  read_execution: {
    method: "GET";
    path: "/api/executions/{execution_id}";
    query: { wait?: number; };
    body: undefined;
    answer: ExecutionDetail;
  };
  /** How an execution failed, then the children that failed it, down to the lowest. */
  read_failures: {
    method: "GET";
    path: "/api/executions/{execution_id}/failures";
    query: Record<string, never>;
    body: undefined;
    answer: FailureChain;
  };
  /** The state of an execution as it was after an event. */
  read_state: {
    method: "GET";
    path: "/api/executions/{execution_id}/state";
    query: { at?: number; };
    body: undefined;
    answer: Record<string, unknown>;
  };
  /** Why an execution stands, or stood, where it does; with `step`, why that ran or did not. */
  read_explanation: {
    method: "GET";
    path: "/api/executions/{execution_id}/explanation";
    query: { at?: number; step?: string; };
    body: undefined;
    answer: Explanation | StepExplanation;
  };
  /** The events of an execution as columns, with what each does to the marking. */
  read_index: {
    method: "GET";
    path: "/api/executions/{execution_id}/index";
    query: { after?: number; };
    body: undefined;
    answer: HistoryIndex;
  };
  /** The runs of an execution in time. */
  read_runs: {
    method: "GET";
    path: "/api/executions/{execution_id}/runs";
    query: { at?: number; cursor?: string; limit?: number; };
    body: undefined;
    answer: RunPage;
  };
  /** A run with a page of its iterations, and their attempts. */
  read_run: {
    method: "GET";
    path: "/api/executions/{execution_id}/runs/{run}";
    query: { at?: number; cursor?: string; limit?: number; };
    body: undefined;
    answer: RunDetail;
  };
  /** The picture of the document that an execution runs, or went on with, as numbers. */
  read_execution_net: {
    method: "GET";
    path: "/api/executions/{execution_id}/net";
    query: Record<string, never>;
    body: undefined;
    answer: NetAnswer;
  };
  /** The value of an expression after an event, as the last run of a step sees it if one is named. */
  evaluate_expression: {
    method: "POST";
    path: "/api/executions/{execution_id}/evaluate";
    query: Record<string, never>;
    body: EvaluateRequest;
    answer: EvaluatedExpression;
  };
  /** Where two executions part, and what came out differently. */
  diff_executions: {
    method: "GET";
    path: "/api/executions/{execution_id}/diff/{other}";
    query: Record<string, never>;
    body: undefined;
    answer: ExecutionDiff;
  };
  /** All that there is to see of an execution, in one document. */
  export_execution: {
    method: "GET";
    path: "/api/executions/{execution_id}/export";
    query: Record<string, never>;
    body: undefined;
    answer: ExecutionExport;
  };
  /** Decide an execution again and compare. */
  verify_execution: {
    method: "GET";
    path: "/api/executions/{execution_id}/verify";
    query: Record<string, never>;
    body: undefined;
    answer: VerificationAnswer;
  };
  /** Cancel or retry all executions that match, up to 1,000 at once. */
  operate_on_many: {
    method: "POST";
    path: "/api/executions/bulk";
    query: Record<string, never>;
    body: BulkRequest;
    answer: BulkAnswer;
  };
  /** End an execution, and all that it started. */
  cancel_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/cancel";
    query: Record<string, never>;
    body: CancelRequest;
    answer: OperationAnswer;
  };
  /** Hold an execution: nothing new begins. */
  pause_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/pause";
    query: Record<string, never>;
    body: EmptyRequest;
    answer: OperationAnswer;
  };
  /** Go on with an execution that was paused. */
  resume_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/resume";
    query: Record<string, never>;
    body: EmptyRequest;
    answer: OperationAnswer;
  };
  /** Send a signal to an execution. */
  signal_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/signal";
    query: Record<string, never>;
    body: SignalRequest;
    answer: OperationAnswer;
  };
  /** Go on with an execution at what failed, also while other branches run; `dry_run` says with what. */
  retry_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/retry";
    query: { dry_run?: boolean; };
    body: RetryRequestBody;
    answer: OperationAnswer | ReopenPreview;
  };
  /** Run the failed iterations of loops that have ended again; `dry_run` says which. */
  redrive_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/redrive";
    query: { dry_run?: boolean; };
    body: RedriveRequestBody;
    answer: OperationAnswer | ReopenPreview;
  };
  /** End what is stuck at a step, or failed there, as done with a result. */
  complete_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/complete";
    query: Record<string, never>;
    body: CompleteRequest;
    answer: OperationAnswer;
  };
  /** End what is stuck at a step, or failed there, without a result. */
  skip_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/skip";
    query: Record<string, never>;
    body: SkipRequest;
    answer: OperationAnswer;
  };
  /** Run a copy of an execution from one of its events on; `dry_run` says what is kept and runs again. */
  fork_execution: {
    method: "POST";
    path: "/api/executions/{execution_id}/fork";
    query: { dry_run?: boolean; };
    body: ForkRequestBody;
    answer: OperationAnswer | ForkPreview;
  };
  /** The events of an execution, a page at a time. */
  list_events: {
    method: "GET";
    path: "/api/executions/{execution_id}/events";
    query: { after?: number; before?: number | null; fields?: string; limit?: number; };
    body: undefined;
    answer: EventPage;
  };
  /** The events of an execution as they come (SSE); `Last-Event-ID` goes on where a reader was. */
  stream_events: {
    method: "GET";
    path: "/api/executions/{execution_id}/stream";
    query: { after?: number; };
    body: undefined;
    answer: string;
  };
  /** What tasks wrote, as they do (SSE); `Accept: application/json` gives what there is so far. */
  read_logs: {
    method: "GET";
    path: "/api/executions/{execution_id}/logs";
    query: { step?: string; task?: string; follow?: boolean; after?: string; limit?: number; };
    body: undefined;
    answer: LogPage | string;
  };
  /** The bytes that a reference stands for, or a range of them; with `rows`, some rows in JSON. */
  read_result: {
    method: "GET";
    path: "/api/results/{execution_id}/{key}";
    query: { store?: string; rows?: number | null; limit?: number; path?: string[]; };
    body: undefined;
    answer: ResultRows | string;
  };
  /** What changes, by topics, in one stream (SSE); `Last-Event-ID` goes on where a reader was. */
  stream_topics: {
    method: "GET";
    path: "/api/stream";
    query: { topics?: string; after?: string; };
    body: undefined;
    answer: string;
  };
  /** What waits for a person: questions, what an answer must fit, who may answer, until when. */
  list_waits: {
    method: "GET";
    path: "/api/waits";
    query: { execution_id?: string; mine?: boolean; cursor?: string; limit?: number; };
    body: undefined;
    answer: WaitList;
  };
  /** What needs somebody, what runs, and the last 24 hours. */
  read_overview: {
    method: "GET";
    path: "/api/overview";
    query: Record<string, never>;
    body: undefined;
    answer: Overview;
  };
  /** By pool: the oldest runs that are ready, and why no worker has them. */
  read_queue: {
    method: "GET";
    path: "/api/queue";
    query: Record<string, never>;
    body: undefined;
    answer: QueueAnswer;
  };
  /** Open a session of a browser, with a token or the code of a login link: sets a cookie. */
  open_session: {
    method: "POST";
    path: "/api/session";
    query: Record<string, never>;
    body: SessionRequest;
    answer: CallerAnswer;
  };
  /** End the session: its cookie is refused from now on. Sessions end with their token, too. */
  close_session: {
    method: "DELETE";
    path: "/api/session";
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** A link that opens one session as who asks, within an hour. */
  create_login_link: {
    method: "POST";
    path: "/api/session/link";
    query: Record<string, never>;
    body: undefined;
    answer: LoginLink;
  };
  /** Who asks, with which role, and what that allows. */
  read_caller: {
    method: "GET";
    path: "/api/me";
    query: Record<string, never>;
    body: undefined;
    answer: CallerAnswer;
  };
  /** The stored credentials, without their fields. */
  list_credentials: {
    method: "GET";
    path: "/api/credentials";
    query: Record<string, never>;
    body: undefined;
    answer: CredentialList;
  };
  /** Store a credential, or replace it. */
  set_credential: {
    method: "POST";
    path: "/api/credentials";
    query: Record<string, never>;
    body: CredentialBody;
    answer: CredentialItem;
  };
  /** Which tasks of the newest versions of playbooks name which credentials. */
  read_credential_usage: {
    method: "GET";
    path: "/api/credential-usage";
    query: Record<string, never>;
    body: undefined;
    answer: CredentialUsageList;
  };
  /** A stored credential, its secrets as `***`. */
  read_credential: {
    method: "GET";
    path: "/api/credentials/{name}";
    query: Record<string, never>;
    body: undefined;
    answer: CredentialDetail;
  };
  /** Delete a stored credential. */
  delete_credential: {
    method: "DELETE";
    path: "/api/credentials/{name}";
    query: Record<string, never>;
    body: undefined;
    answer: CredentialItem;
  };
  /** The tokens, and whether they are valid. */
  list_tokens: {
    method: "GET";
    path: "/api/tokens";
    query: Record<string, never>;
    body: undefined;
    answer: TokenList;
  };
  /** Make a token; it is shown this one time. */
  create_token: {
    method: "POST";
    path: "/api/tokens";
    query: Record<string, never>;
    body: TokenRequest;
    answer: CreatedToken;
  };
  /** Make a token invalid, at once. */
  revoke_token: {
    method: "DELETE";
    path: "/api/tokens/{name}";
    query: Record<string, never>;
    body: undefined;
    answer: TokenItem;
  };
  /** Who changed what, the newest first. */
  list_audit: {
    method: "GET";
    path: "/api/audit";
    query: { cursor?: string; limit?: number; };
    body: undefined;
    answer: AuditPage;
  };
  /** The workers of the server, and what they run. */
  list_workers: {
    method: "GET";
    path: "/api/workers";
    query: Record<string, never>;
    body: undefined;
    answer: WorkerList;
  };
  /** Tells a worker, by its name or session, to end what it runs, take nothing more, and leave. */
  drain_worker: {
    method: "POST";
    path: "/api/workers/{worker}/drain";
    query: Record<string, never>;
    body: EmptyRequest;
    answer: DrainAnswer;
  };
  /** By pool: workers, their kinds and slots, how many runs wait, for how long, and why. */
  list_pools: {
    method: "GET";
    path: "/api/pools";
    query: Record<string, never>;
    body: undefined;
    answer: PoolList;
  };
  /** Whether the process is there. */
  is_alive: {
    method: "GET";
    path: "/healthz";
    query: Record<string, never>;
    body: undefined;
    answer: HealthAnswer;
  };
  /** Whether it can serve: its store answers, its disk has room, and it is not about to end. */
  is_ready: {
    method: "GET";
    path: "/readyz";
    query: Record<string, never>;
    body: undefined;
    answer: HealthAnswer;
  };
  /** What the server is, how long it runs, who works for it, and what waits. */
  read_status: {
    method: "GET";
    path: "/api/status";
    query: Record<string, never>;
    body: undefined;
    answer: ServerStatus;
  };
  /** What the server counts of itself, as Prometheus reads it. */
  read_metrics: {
    method: "GET";
    path: "/metrics";
    query: Record<string, never>;
    body: undefined;
    answer: string;
  };
}
