import { get } from "../../api/client";
import type { ExecutionDetail, Explanation } from "../../api/types";
import { isMapping, oneLine } from "../../format/json";
import { shortId } from "../../format/number";
import { duration } from "../../format/time";
import { href } from "../../router";
import { Button, copyText, Labels } from "../../view/parts";
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
        {detail.parent && <a class="small nowrap" href={href(`/executions/${detail.parent}`)}>parent</a>}
        {detail.forked_from && <a class="small nowrap" href={href(`/compare/${detail.forked_from}/${detail.execution_id}`)}>forked: compare</a>}
        <Labels labels={detail.labels} />
      </div>
      <Actions model={model} detail={detail} />
    </header>
  );
}

/** The first failure in one line: what, where, with which input, in which line of the playbook. */
export function Failure({ model, detail }: { model: ExecutionModel; detail: ExecutionDetail }) {
  const { error } = detail;
  const wanted = error !== null && detail.events === model.last.value;
  const answer = useAnswer(wanted ? `${model.id} explanation ${detail.events}` : null, (signal) =>
    get<Explanation>(model.route("explanation"), { query: { at: detail.events }, signal }),
  );
  if (!error) return null;
  const failure = answer.data?.failure;
  const step = typeof error.step === "string" ? error.step : null;
  const where = [error.task, error.attempt ? `attempt ${error.attempt}` : ""].filter(Boolean).join(", ");
  return (
    <div class="failure" role="alert">
      <span class="failure-mark" aria-hidden="true">✗</span>
      <p class="failure-text">
        {step && <><StepButton model={model} step={step} />{where && <span class="muted"> ({where})</span>}: </>}
        <b>{String(error.kind ?? "error")}</b> <span>{String(error.message ?? "")}</span>
        {failure?.input != null && <span class="muted"> · got <code>{oneLine(inputOf(failure.input), 90)}</code></span>}
        {failure && <> · <SourceLine model={model} line={failure.line} /></>}
      </p>
    </div>
  );
}

/** What went into a task, without the code that it runs. */
function inputOf(input: unknown): unknown {
  return isMapping(input) && isMapping(input.args) ? input.args : input;
}
