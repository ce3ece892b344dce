import { useState } from "preact/hooks";
import { get } from "../../api/client";
import type { AttemptBar, RunBar, RunDetail } from "../../api/types";
import type { Marker } from "../../format/json";
import { plural } from "../../format/number";
import { duration } from "../../format/time";
import { queryValue, setQuery } from "../../router";
import { runAt } from "../../time/bars";
import { Button, Problem } from "../../view/parts";
import { Status } from "../../view/status";
import { Value } from "../../view/value";
import { useAnswer } from "./answer";
import type { ExecutionModel } from "./model";
import { SourceLine } from "./source-line";
import { StoredValue } from "./stored-value";
import { EventButton } from "./why";

/** Every attempt of a run: what went in, what came out, and what the task's policy made of it. */
export function Attempts({ model, step }: { model: ExecutionModel; step: string }) {
  const at = model.at.value;
  const runs = (model.timeline.value?.bars ?? []).filter((bar) => bar.step === step && bar.seq <= at);
  const asked = queryValue("run");
  const bar = runs.find((item) => item.run === asked) ?? runs[runs.length - 1];
  if (!bar) return <p class="muted">{step} has not run at this event.</p>;
  return (
    <div class="stack">
      {runs.length > 1 && <RunChoice model={model} runs={runs} chosen={bar} />}
      <RunAttempts key={bar.run} model={model} bar={bar} at={at} />
    </div>
  );
}

function RunChoice({ model, runs, chosen }: { model: ExecutionModel; runs: readonly RunBar[]; chosen: RunBar }) {
  const index = runs.indexOf(chosen);
  const go = (number: number) => setQuery({ run: runs[number]!.run });
  return (
    <div class="row">
      <Button small kind="bare" icon="previous" aria-label="Earlier run" disabled={!index} onClick={() => go(index - 1)} />
      <span class="numbers">run {index + 1} of {runs.length}</span>
      <Button small kind="bare" icon="next" aria-label="Later run" disabled={index === runs.length - 1} onClick={() => go(index + 1)} />
      <Status status={runAt(chosen, model.at.value, model.moment.value)?.status ?? "running"} />
    </div>
  );
}

function RunAttempts({ model, bar, at }: { model: ExecutionModel; bar: RunBar; at: number }) {
  const [cursors, setCursors] = useState<readonly string[]>([""]);
  const cursor = cursors[cursors.length - 1]!;
  const answer = useAnswer(`${model.id} run ${bar.run} ${at} ${cursor}`, (signal) =>
    get<RunDetail>(model.route("runs", bar.run), { query: { at, cursor }, signal }),
  );
  if (answer.problem) return <Problem problem={answer.problem} />;
  if (!answer.data) return <p class="loading" role="status">Loading…</p>;
  const { attempts, next_cursor: next } = answer.data;
  const { loop } = answer.data.bar;
  // What failed is what one looks for; a long list of it stays a list.
  const failed = attempts.filter((attempt) => attempt.status === "failed").slice(0, 5);
  return (
    <div class="stack" aria-busy={!answer.current}>
      {loop && <p>{plural(loop.total, "iteration")}: {loop.succeeded} succeeded, {loop.failed} failed, {loop.open} open</p>}
      {!attempts.length && <p class="muted">No attempt has begun at this event.</p>}
      {attempts.map((attempt) => <Attempt key={attempt.seq} model={model} attempt={attempt} looped={loop !== null} opened={failed.includes(attempt)} />)}
      {(cursors.length > 1 || next) && (
        <div class="row">
          <Button small disabled={cursors.length === 1} onClick={() => setCursors(cursors.slice(0, -1))}>Earlier iterations</Button>
          <Button small disabled={!next} onClick={() => next && setCursors([...cursors, next])}>Later iterations</Button>
        </div>
      )}
    </div>
  );
}

function Attempt({ model, attempt, looped, opened }: { model: ExecutionModel; attempt: AttemptBar; looped: boolean; opened: boolean }) {
  const reference = (marker: Marker) => <StoredValue marker={marker} />;
  const error = attempt.error;
  const [open, setOpen] = useState(opened);
  return (
    <details class="attempt" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Status status={attempt.status} word={attempt.status} />
        <b>{attempt.task}</b>
        <span class="muted">{attempt.kind}</span>
        {looped && <span class="muted numbers">[{attempt.iteration}]</span>}
        {(!looped || attempt.attempt > 1) && <span class="numbers">attempt {attempt.attempt}</span>}
        {attempt.end !== null && <span class="muted numbers">{duration((attempt.end - attempt.begin) / 1_000)}</span>}
        {attempt.directive && attempt.directive !== "continue" && <span class="badge">{attempt.directive}</span>}
      </summary>
      {open && <div class="stack tight attempt-body">
        <p class="row small muted">began at <EventButton model={model} seq={attempt.seq} />{attempt.ended_seq !== null && <>ended at <EventButton model={model} seq={attempt.ended_seq} /></>}{attempt.line != null && <span>decided in <SourceLine model={model} line={attempt.line} /></span>}</p>
        {attempt.redelivered > 0 && <p class="small">Lost with its worker and begun again {attempt.redelivered}×.</p>}
        {error && <ErrorText error={error} />}
        {attempt.input != null && <section><h3>Input</h3><Value value={attempt.input} reference={reference} /></section>}
        {attempt.result != null && <section><h3>Result</h3><Value value={attempt.result} reference={reference} /></section>}
      </div>}
    </details>
  );
}

/** An error with its traceback, the end of it in sight. */
export function ErrorText({ error }: { error: Record<string, unknown> }) {
  const details = (error.details ?? {}) as Record<string, unknown>;
  const traceback = error.traceback ?? details.traceback;
  return (
    <div class="error-text">
      <p><b class="failed-text">{String(error.kind ?? "error")}</b> {String(error.message ?? "")}</p>
      {typeof traceback === "string" && traceback && <pre tabIndex={0}>{traceback}</pre>}
    </div>
  );
}
