import { get } from "../../api/client";
import type { ExecutionDetail, Explanation } from "../../api/types";
import { isMapping, oneLine } from "../../format/json";
import { shortId } from "../../format/number";
import { duration } from "../../format/time";
import { href } from "../../router";
import { Button, copyText, Labels } from "../../view/parts";
import { Prose } from "../../view/prose";
import { Status } from "../../view/status";
import { Duration, Time } from "../../view/time";
import { Actions } from "./actions";
import { useAnswer } from "./answer";
import type { ExecutionModel } from "./model";
import { SourceLine } from "./source-line";
import { StepButton } from "./why";

/** What it is, how it stands, what can be done; below it what went wrong, and where. */
export function Head({ model, detail }: { model: ExecutionModel; detail: ExecutionDetail }) {
  const registered = model.registered.value;
  return (
    <header class="execution-head">
      <div class="execution-title">
        <h1 tabIndex={-1}>{registered ? <a class="plain" href={href(`/playbooks/${registered}`)}>{registered}</a> : detail.playbook}</h1>
        <span class="row execution-id">
          <code title={detail.execution_id}>{shortId(detail.execution_id)}</code>
          <Button small kind="bare" icon="copy" aria-label="Copy the id" title="Copy the id" onClick={() => void copyText(detail.execution_id)} />
        </span>
        <span role="status" class="row"><Status status={detail.status} /></span>
        <span class="muted">
          {detail.ended_at === null ? <Duration from={detail.started_at} until={null} /> : <span class="time">{duration(detail.duration_ms)}</span>}
        </span>
        <span class="muted execution-began">began <Time at={detail.started_at} /></span>
        {detail.parent && !model.isExported && <a class="small nowrap" href={href(`/executions/${detail.parent}`)}>parent</a>}
        {detail.forked_from && !model.isExported && <a class="small nowrap" href={href(`/compare/${detail.forked_from}/${detail.execution_id}`)}>forked: compare</a>}
        <Labels labels={detail.labels} />
      </div>
      <Actions model={model} detail={detail} />
    </header>
  );
}

/** One line that is always there: what failed, what it waits for, or what came out. */
export function Summary({ model, detail }: { model: ExecutionModel; detail: ExecutionDetail }) {
  if (detail.error) return <Failure model={model} detail={detail} error={detail.error} />;
  return <p class="summary">{model.isOver.value ? <Outcome detail={detail} /> : <UnderWay model={model} />}</p>;
}

function Outcome({ detail }: { detail: ExecutionDetail }) {
  if (detail.status === "cancelled") return <>Cancelled; what had completed is kept.</>;
  return <>Result <code>{oneLine(detail.result, 300)}</code></>;
}

function UnderWay({ model }: { model: ExecutionModel }) {
  const steps = [...(model.state.value?.steps ?? [])];
  const reasons = [...new Set(model.held.value.map((item) => item.reason ?? ""))];
  const parts = (["running", "ready", "waiting"] as const).flatMap((status) => {
    const names = steps.filter(([, state]) => state.status === status).map(([name]) => name);
    return names.length ? [{ status, names }] : [];
  });
  if (!parts.length) return <>Nothing is under way.</>;
  return (
    <>
      {parts.map(({ status, names }) => (
        <span key={status}>
          <Status status={status} />{" "}
          {names.slice(0, 6).map((name) => <span key={name}><StepButton model={model} step={name} /> </span>)}
          {names.length > 6 && <span class="muted">and {names.length - 6} more </span>}
          {status === "ready" && reasons.length > 0 && <span class="waiting-text"><Prose text={reasons.slice(0, 3).join("; ")} /> </span>}
        </span>
      ))}
    </>
  );
}

/** The first failure: what, where, with which input, in which line of the playbook. */
function Failure({ model, detail, error }: { model: ExecutionModel; detail: ExecutionDetail; error: Record<string, unknown> }) {
  const wanted = detail.events === model.last.value;
  const answer = useAnswer(wanted ? `${model.id} explanation ${detail.events}` : null, (signal) =>
    get<Explanation>(model.route("explanation"), { query: { at: detail.events }, signal }),
  );
  const failure = answer.data?.failure;
  const step = typeof error.step === "string" ? error.step : null;
  const where = [error.task, error.attempt ? `attempt ${error.attempt}` : ""].filter(Boolean).join(", ");
  const message = String(error.message ?? "");
  return (
    <p class="summary failed" role="alert" title={message}>
      <span class="failed-text" aria-hidden="true">✗ </span>
      {step && <><StepButton model={model} step={step} />{where && <span class="muted"> ({where})</span>}: </>}
      <b class="failed-text">{String(error.kind ?? "error")}</b> {failure && <><SourceLine model={model} line={failure.line} /> </>}
      <span>{message}</span>
      {failure?.input != null && <span class="muted"> · got <code>{oneLine(inputOf(failure.input), 90)}</code></span>}
    </p>
  );
}

/** What went into a task, without the code that it runs. */
function inputOf(input: unknown): unknown {
  return isMapping(input) && isMapping(input.args) ? input.args : input;
}
