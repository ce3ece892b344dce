import type { ChildBar, RunBar } from "../api/types";
import type { StepStatus } from "../net/step-state";

/** A run as it was at an event: what came later is not drawn. `end` is null while it is open. */
export interface ShownRun {
  readonly bar: RunBar;
  readonly status: StepStatus;
  readonly end: number | null;
  /** Of a loop that was still open then, how many iterations had ended. */
  readonly iterations?: number;
}

export type TimeRow =
  | { readonly kind: "step"; readonly key: string; readonly step: string; readonly runs: readonly ShownRun[]; readonly open: boolean; readonly expandable: boolean }
  | { readonly kind: "run"; readonly key: string; readonly step: string; readonly run: ShownRun; readonly open: boolean; readonly expandable: boolean }
  | { readonly kind: "child"; readonly key: string; readonly step: string; readonly child: ChildBar; readonly depth: number; readonly open: boolean }
  | { readonly kind: "inner"; readonly key: string; readonly step: string; readonly runs: readonly ShownRun[]; readonly depth: number; readonly execution: string };

const STATUSES: Readonly<Record<RunBar["status"], StepStatus>> = {
  ready: "ready",
  running: "running",
  waiting: "waiting",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
};

const NO_COUNTS: ReadonlyMap<string, number> = new Map();

/** A run at event `at`, which was at this time (`Infinity`: as it is), or null if it had not begun. */
export function runAt(bar: RunBar, at: number, time: number, iterations: ReadonlyMap<string, number> = NO_COUNTS): ShownRun | null {
  if (bar.seq > at) return null;
  if (bar.ended_seq !== null && bar.ended_seq <= at) return { bar, status: STATUSES[bar.status], end: bar.end };
  const status = time === Infinity && bar.ended_seq === null ? STATUSES[bar.status] : openStatus(bar, time);
  const ended = bar.ended_seq !== null && bar.loop ? { iterations: iterations.get(bar.run) ?? 0 } : {};
  return { bar, status, end: null, ...ended };
}

/** Of a run that was under way then. */
function openStatus(bar: RunBar, time: number): StepStatus {
  const wait = bar.waits.find(({ begin, end }) => begin <= time && (end === null || time < end));
  return wait ? (wait.reason === "ready" ? "ready" : "waiting") : "running";
}

/** The runs of a child, if they are known, by its execution. */
export type ChildRuns = ReadonlyMap<string, readonly RunBar[]>;

/** One row for each step in the order in which they began, and below an open one its runs and their children. */
export function timeRows(
  bars: readonly RunBar[], at: number, time: number, open: ReadonlySet<string>, children: ChildRuns, iterations: ReadonlyMap<string, number> = NO_COUNTS,
): TimeRow[] {
  const bySteps = new Map<string, ShownRun[]>();
  for (const bar of bars) {
    const run = runAt(bar, at, time, iterations);
    if (!run) continue;
    const list = bySteps.get(bar.step);
    if (list) list.push(run);
    else bySteps.set(bar.step, [run]);
  }
  const rows: TimeRow[] = [];
  for (const [step, runs] of bySteps) {
    const key = `step ${step}`;
    const expandable = runs.length > 1 || runs.some((run) => run.bar.children.length > 0);
    rows.push({ kind: "step", key, step, runs, open: open.has(key), expandable });
    if (!open.has(key)) continue;
    for (const run of runs) addRun(rows, run, runs.length > 1, open, children);
  }
  return rows;
}

function addRun(rows: TimeRow[], run: ShownRun, several: boolean, open: ReadonlySet<string>, children: ChildRuns): void {
  const { bar } = run;
  const key = `run ${bar.run}`;
  const expandable = bar.children.length > 0;
  if (several) rows.push({ kind: "run", key, step: bar.step, run, open: open.has(key), expandable });
  if (several && !open.has(key)) return;
  for (const child of bar.children) addChild(rows, child, bar.step, several ? 2 : 1, open, children);
}

function addChild(
  rows: TimeRow[], child: ChildBar, step: string, depth: number, open: ReadonlySet<string>, children: ChildRuns,
): void {
  const key = `child ${child.execution_id}`;
  rows.push({ kind: "child", key, step, child, depth, open: open.has(key) });
  if (!open.has(key)) return;
  const inner = timeRows(children.get(child.execution_id) ?? [], Infinity, Infinity, new Set(), children);
  for (const row of inner)
    if (row.kind === "step")
      rows.push({ kind: "inner", key: `${key} ${row.step}`, step: row.step, runs: row.runs, depth: depth + 1, execution: child.execution_id });
}

/** How far a loop is, or was. How many had failed by an event in the past is not known. */
export function loopText({ bar: { loop }, iterations }: ShownRun): string {
  if (!loop) return "";
  if (iterations !== undefined) return `${iterations}/${loop.total}`;
  const parts = [`${loop.succeeded + loop.failed}/${loop.total}`];
  if (loop.failed) parts.push(`${loop.failed} failed`);
  if (loop.open) parts.push(`${loop.open} open`);
  return parts.join(", ");
}
