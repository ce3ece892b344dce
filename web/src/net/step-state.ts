/** How a step stands, in the words of `noetl executions show`; what no worker has yet is `ready`. */
export type StepStatus =
  | "completed"
  | "failed"
  | "running"
  | "ready"
  | "waiting"
  | "not_admitted"
  | "cancelled"
  | "skipped";

/** What the picture shows of a step. `runs` are all that began, `tokens` those that are on their way to it. */
export interface StepState {
  readonly status: StepStatus;
  readonly runs: number;
  readonly failed: number;
  readonly tokens: number;
}

/** A whole picture's state: steps that nothing came to are absent. `taken` counts by `SOURCE number`. */
export interface NetState {
  readonly steps: ReadonlyMap<string, StepState>;
  readonly taken: ReadonlyMap<string, number>;
}

export function arcKey(source: string, number: number): string {
  return `${source} ${number}`;
}

export function statusWord(status: string): string {
  return status.replace("_", " ");
}

/** `completed, 3 runs, 1 failed, 2 tokens`: what a person who does not see the picture is told. */
export function stateSentence(state: StepState | undefined): string {
  if (!state) return "not reached";
  const parts = [state.status === "ready" ? "ready for a worker" : statusWord(state.status)];
  if (state.runs > 1) parts.push(`${state.runs} runs`);
  if (state.failed && state.runs > 1) parts.push(`${state.failed} failed`);
  if (state.tokens) parts.push(state.tokens === 1 ? "1 token" : `${state.tokens} tokens`);
  return parts.join(", ");
}
