import { useEffect, useState } from "preact/hooks";
import { asProblem, post } from "../../api/client";
import type { ForkPreview, OperationAnswer, ProblemDocument } from "../../api/types";
import { command } from "../../format/command";
import { plural } from "../../format/number";
import { href, navigate } from "../../router";
import { may } from "../../session";
import { Dialog } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button, CommandLine, Problem } from "../../view/parts";
import { mappingOf } from "../../format/json";
import type { ExecutionModel } from "./model";
import { SourceLine } from "./source-line";

/** A copy that goes on from the event, perhaps with other values or another document; first what that would do. */
export function ForkDialog({ model, close }: { model: ExecutionModel; close: () => void }) {
  const [event, setEvent] = useState(String(model.forkableAt()));
  const at = Number(event);
  const [workload, setWorkload] = useState("");
  const [ctx, setCtx] = useState("");
  const [version, setVersion] = useState("");
  const [document, setDocument] = useState("");
  const [preview, setPreview] = useState<ForkPreview>();
  const [problem, setProblem] = useState<ProblemDocument>();
  const [busy, setBusy] = useState(false);
  const workloadValue = mappingOf(workload);
  const ctxValue = mappingOf(ctx);
  const valid = workloadValue.wrong === null && ctxValue.wrong === null && /^\d*$/.test(version) && /^[1-9]\d*$/.test(event);
  const body = {
    at,
    workload: workloadValue.value,
    ctx: ctxValue.value,
    ...(version ? { version: Number(version) } : {}),
    ...(document.trim() ? { playbook: document } : {}),
  };
  const asked = JSON.stringify(body);
  useEffect(() => {
    if (!valid) return;
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setPreview(await post<ForkPreview>(model.route("fork"), { query: { dry_run: true }, body, signal: controller.signal }));
        setProblem(undefined);
      } catch (error) {
        if (!controller.signal.aborted) setProblem(asProblem(error));
      }
    }, 200);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [asked, valid]);
  const fork = async () => {
    setBusy(true);
    try {
      const answer = await post<OperationAnswer>(model.route("fork"), { body });
      toast("Forked");
      close();
      navigate(href(`/executions/${answer.execution_id}`));
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const words = [
    "executions", "fork", model.id, "--at", at,
    ...Object.entries(workloadValue.value).flatMap(([key, value]) => ["--set", `${key}=${JSON.stringify(value)}`]),
    ...(Object.keys(ctxValue.value).length ? ["--ctx", JSON.stringify(ctxValue.value)] : []),
    ...(document.trim() ? ["--playbook", "FILE"] : []),
  ];
  const foot = (
    <>
      <Button onClick={close}>Close</Button>
      <Button kind="primary" icon="fork" disabled={busy || !valid || !preview || problem !== undefined} onClick={() => void fork()}>Fork at event {at}</Button>
    </>
  );
  return (
    <Dialog title="Fork here" close={close} foot={foot} class="fork-dialog">
      <p class="muted">A copy of the history up to this event goes on as a new execution. This one is left alone.</p>
      <div class="fork-fields">
        <Field id="fork-workload" label="Workload, laid over" value={workload} change={setWorkload} wrong={workloadValue.wrong} placeholder='{"limit": 5}' />
        <Field id="fork-ctx" label="ctx, laid over" value={ctx} change={setCtx} wrong={ctxValue.wrong} placeholder='{"total": 0}' />
      </div>
      <div class="fork-fields">
      <div class="field">
        <label for="fork-event">Event <span class="type">the last one that is copied</span></label>
        <input id="fork-event" class="input" inputMode="numeric" value={event} onInput={(change) => setEvent(change.currentTarget.value)} />
      </div>
      <div class="field">
        <label for="fork-version">Version of the playbook <span class="type">empty: the same</span></label>
        <input id="fork-version" class="input" inputMode="numeric" value={version} disabled={!!document} onInput={(change) => setVersion(change.currentTarget.value)} />
      </div>
      </div>
      {may("author") && (
        <details>
          <summary>Another document</summary>
          <textarea class="input code" rows={8} aria-label="Playbook" spellcheck={false} placeholder="apiVersion: …" value={document} onInput={(event) => setDocument(event.currentTarget.value)} />
        </details>
      )}
      {problem && <Problem problem={problem} />}
      {preview && !problem && <Preview model={model} preview={preview} />}
      <CommandLine text={command(...words)} />
    </Dialog>
  );
}

function Field({ id, label, value, change, wrong, placeholder }: { id: string; label: string; value: string; change: (text: string) => void; wrong: string | null; placeholder: string }) {
  return (
    <div class="field">
      <label for={id}>{label} <span class="type">JSON</span></label>
      <textarea id={id} class="input code" rows={3} spellcheck={false} placeholder={placeholder} aria-invalid={wrong !== null} value={value} onInput={(event) => change(event.currentTarget.value)} />
      {wrong && <p class="wrong">{wrong}</p>}
    </div>
  );
}

const EFFECTS = { write: "changes something outside", unknown: "may change something outside", none: "changes nothing outside" } as const;

/** What is kept, what goes on, and which effects happen again. */
function Preview({ model, preview }: { model: ExecutionModel; preview: ForkPreview }) {
  const effects = preview.repeats.filter((task) => task.effect !== "none");
  const rest = preview.repeats.length - effects.length;
  return (
    <section class="fork-preview stack tight" aria-label="What the fork would do">
      <p>
        <b>{plural(preview.cut, "event")}</b> copied{preview.cut !== preview.at && <>, to the end of its append</>}.{" "}
        {preview.kept.length ? <>Kept: {preview.kept.map((step) => `${step.step}${step.runs > 1 ? ` ${step.runs}×` : ""}`).join(", ")}.</> : "No run has ended by then."}
      </p>
      {preview.open.length > 0 && <p>Goes on: {preview.open.map((run) => `${run.step}${run.task ? ` (${run.task})` : ""}`).join(", ")}.</p>}
      <h3>{effects.length ? "Effects that happen again if it comes to them" : "No effect happens again"}</h3>
      {effects.length > 0 && (
        <ul class="fork-effects">
          {effects.map((task) => (
            <li key={`${task.step} ${task.task} ${task.line}`} class={task.effect}>
              <b>{task.step}</b> {task.task} <span class="muted">{task.kind}</span> <SourceLine model={model} line={task.line} />
              <span class="muted small"> {EFFECTS[task.effect]}{task.begun ? `, began ${task.begun}×` : ""}</span>
            </li>
          ))}
        </ul>
      )}
      {rest > 0 && <p class="muted small">{plural(rest, "other task")} of runs after this event change nothing outside.</p>}
    </section>
  );
}
