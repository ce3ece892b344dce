/** What to start an execution with: a form, or JSON; a dry run says what would happen. */
import { useRef, useState } from "preact/hooks";
import { asProblem, post } from "../../api/client";
import type { PlanAnswer, ProblemDocument, StartedExecution } from "../../api/types";
import { command, payload } from "../../format/command";
import type { Mapping } from "../../format/json";
import { changes, misfits, schemaOf, type Schema } from "../../format/schema";
import { navigate } from "../../router";
import { isUnfinished, JsonInput, SchemaFields } from "../../view/form";
import { Button, CommandLine, Problem, Segments } from "../../view/parts";
import { executionHref } from "../executions/execution-columns";

/** A registered playbook, or the text of one. */
export type Subject = { path: string; version: number | null } | { playbook: string };

export function plan(what: Subject, workload: Mapping, signal?: AbortSignal): Promise<PlanAnswer> {
  return post<PlanAnswer>("executions", { query: { dry_run: 1 }, body: { ...what, workload }, signal });
}

interface Props {
  what: Subject;
  defaults: PlanAnswer;
  workload: Mapping;
  setWorkload: (workload: Mapping) => void;
}

/** The form is made from the workload of the document: its defaults say what its fields take. */
export function RunForm({ what, defaults, workload, setWorkload }: Props) {
  const schema: Schema = schemaOf(defaults.workload);
  const [as, setAs] = useState<"form" | "json">("form");
  const [jsonWrong, setJsonWrong] = useState<string | null>(null);
  const [label, setLabel] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ProblemDocument>();
  const [looked, setLooked] = useState<PlanAnswer>();
  const given = changes(defaults.workload, workload);
  const wrong = misfits(schema, workload);
  const blocked = busy || Object.keys(wrong).length > 0 || jsonWrong !== null;
  const empty = !Object.keys(schema.properties ?? {}).length;
  const labels = Object.fromEntries(label.split(",").map((pair) => pair.trim().split("=")).filter(([name]) => name).map(([name, ...rest]) => [name, rest.join("=")]));
  const form = useRef<HTMLFormElement>(null);
  const attempt = async (act: () => Promise<void>) => {
    if (isUnfinished(form.current!)) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await act();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  const start = () =>
    attempt(async () => {
      const started = await post<StartedExecution>("executions", { body: { ...what, workload: given, labels } });
      navigate(executionHref(started.execution_id!));
    });
  const look = () => attempt(async () => setLooked(await plan(what, given)));
  return (
    <form class="panel run-form" ref={form} onSubmit={(event) => { event.preventDefault(); if (!blocked) void start(); }}>
      <header>
        <h2>Workload</h2>
        {!empty && <div class="push"><Segments label="Enter as" options={[["form", "Form"], ["json", "JSON"]]} chosen={as} choose={setAs} /></div>}
      </header>
      <div class="panel-body form">
        {as === "json" || empty ? (
          <div class="field">
            <label for="workload-json">{empty ? "This playbook has no inputs of its own; more may be given as JSON" : "The whole workload"}</label>
            <JsonInput rows={empty ? 3 : 14} value={workload} shared={{ id: "workload-json" }} onWrong={setJsonWrong} change={(value) => setWorkload((value ?? {}) as Mapping)} />
          </div>
        ) : (
          <SchemaFields schema={schema} value={workload} change={setWorkload} wrong={wrong} />
        )}
        <div class="field">
          <label for="run-labels">Labels <span class="type">name=value, with commas between</span></label>
          <input id="run-labels" class="input" value={label} onInput={(event) => setLabel(event.currentTarget.value)} />
        </div>
        {problem && <Problem problem={problem} />}
        <div class="form-actions">
          <Button kind="primary" type="submit" icon="play" disabled={blocked}>Run</Button>
          <Button disabled={blocked} onClick={() => void look()}>Dry run</Button>
          {Object.keys(given).length > 0 && <Button kind="bare" onClick={() => setWorkload(defaults.workload)}>Back to the defaults</Button>}
        </div>
        {looked && <Plan plan={looked} />}
        {"path" in what && <div class="stack tight"><span class="small muted">The same in a terminal</span><CommandLine text={command("execute", what.version ? `${what.path}@${what.version}` : what.path, ...payload(given), ...Object.entries(labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]))} /></div>}
      </div>
    </form>
  );
}

function Plan({ plan: shown }: { plan: PlanAnswer }) {
  return (
    <section class="stack" aria-live="polite" aria-label="Dry run">
      {shown.error ? <Problem problem={shown.error} /> : <p class={`notice ${shown.waiting.length ? "waiting" : "completed"}`}>{shown.waiting.length ? "It would start, and then wait:" : "It would start. Nothing was recorded."}</p>}
      {shown.waiting.map((task) => <p key={`${task.step}.${task.task}`}><strong>{task.step}</strong> ({task.kind}): {task.reason} <span class="muted">{task.hint}</span></p>)}
      <dl class="facts">
        <dt>begins at</dt><dd>{shown.entry}</dd>
        {shown.version !== null && <><dt>version</dt><dd>{shown.version}</dd></>}
        {shown.credentials.length > 0 && <><dt>credentials</dt><dd>{shown.credentials.join(", ")}</dd></>}
      </dl>
      {shown.problems.map((item) => <p class="small" key={`${item.line}:${item.code}`}><code>{item.line}:{item.column} {item.code}</code> {item.message}. <span class="muted">{item.hint}</span></p>)}
    </section>
  );
}

