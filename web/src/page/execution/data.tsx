import type { ComponentChildren } from "preact";
import { get } from "../../api/client";
import type { StepExplanation } from "../../api/types";
import { isMapping, type Mapping } from "../../format/json";
import { late } from "../../view/late";
import { Problem } from "../../view/parts";
import { Value } from "../../view/value";
import { useAnswer } from "./answer";
import type { ExecutionModel } from "./model";

const StoredValue = late(async () => (await import("./late-panels")).StoredValue);

/** What `…/state` says of an execution at an event. */
interface StateDocument {
  status: string;
  ctx: Mapping;
  workload: Mapping;
  result: unknown;
  runs: { run: string; step: string; args: Mapping; scope: Mapping }[];
}

/** The values at the event: of a step what went in and came out, and what every step sees. */
export function Data({ model, step }: { model: ExecutionModel; step: string | null }) {
  const at = model.at.value;
  const state = useAnswer(at ? `${model.id} state ${at}` : null, (signal) =>
    get<StateDocument>(model.route("state"), { query: { at }, signal }),
  );
  const why = useAnswer(step === null || !at ? null : `${model.id} why ${step} ${at}`, (signal) =>
    get<StepExplanation>(model.route("explanation"), { query: { step, at }, signal }),
  );
  if (state.problem) return <Problem problem={state.problem} />;
  if (!state.data) return <p class="loading" role="status">Loading…</p>;
  const explanation = why.data?.step === step ? why.data : undefined;
  const run = explanation?.runs?.[explanation.runs.length - 1];
  const open = state.data.runs.find((item) => item.run === run?.run);
  return (
    <div class="stack data" aria-busy={!state.current}>
      {step !== null && explanation && !run && <p class="muted">{step} has not run at this event.</p>}
      {run && isFilled(run.args) && <Part title="Arguments" value={run.args} />}
      {open && isFilled(open.scope) && <Part title="Variables" value={open.scope} />}
      {run && run.result !== undefined && run.result !== null && <Part title="Result" value={run.result} />}
      {run?.error && <Part title="Error" value={run.error} />}
      {step === null && state.data.result != null && <Part title="Result" value={state.data.result} />}
      <Part title="ctx" value={state.data.ctx} />
      <Part title="workload" value={state.data.workload} />
    </div>
  );
}

function Part({ title, value }: { title: ComponentChildren; value: unknown }) {
  return (
    <section class="data-part">
      <h3>{title}</h3>
      {isMapping(value) && !Object.keys(value).length ? (
        <p class="muted small">empty</p>
      ) : (
        <Value value={value} open={2} reference={(marker) => <StoredValue marker={marker} />} />
      )}
    </section>
  );
}

function isFilled(value: unknown): boolean {
  return isMapping(value) && Object.keys(value).length > 0;
}
