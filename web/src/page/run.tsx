import { useEffect, useState } from "preact/hooks";
import { ApiError, asProblem, get, post } from "../api/client";
import { useResource } from "../api/resource";
import type { ExecutionDetail, ExecutionItems, PlanAnswer, ProblemDocument, StartedExecution } from "../api/types";
import { command, payload } from "../format/command";
import type { Mapping } from "../format/json";
import { changes, misfits, schemaOf, type Schema } from "../format/schema";
import { href, navigate, place } from "../router";
import { toast } from "../shell/toasts";
import { JsonInput, SchemaFields } from "../view/form";
import { Button, CommandLine, Empty, LinkButton, Loaded, PageHead, Problem, Segments } from "../view/parts";
import { Status } from "../view/status";
import { Time } from "../view/time";
import { executionHref } from "./executions/execution-columns";

function splitVersion(text: string): { path: string; version: number | null } {
  const match = /^(.*)@(\d+)$/.exec(text);
  return match ? { path: match[1]!, version: Number(match[2]) } : { path: text, version: null };
}

function plan(path: string, version: number | null, workload: Mapping, signal?: AbortSignal): Promise<PlanAnswer> {
  return post<PlanAnswer>("executions", { query: { dry_run: 1 }, body: { path, version, workload }, signal });
}

export default function Run({ path: text }: { path: string }) {
  const { path, version } = splitVersion(text!);
  const first = useResource((signal) => plan(path, version, {}, signal), [path, version]);
  const before = <><a href={href("/playbooks")}>Playbooks</a><span>/</span><a href={href(`/playbooks/${text}`)}>{text}</a></>;
  return (
    <main id="main">
      <PageHead title={`Run ${text}`} before={before} />
      <Loaded from={first}>
        {(defaults) => (defaults.hash ? <RunForm key={text} path={path} version={version} defaults={defaults} /> : <Problem problem={defaults.error!} />)}
      </Loaded>
    </main>
  );
}

function RunForm({ path, version, defaults }: { path: string; version: number | null; defaults: PlanAnswer }) {
  const schema: Schema = schemaOf(defaults.workload);
  const [workload, setWorkload] = useState<Mapping>(defaults.workload);
  const [as, setAs] = useState<"form" | "json">("form");
  const [jsonWrong, setJsonWrong] = useState<string | null>(null);
  const [label, setLabel] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ProblemDocument>();
  const [looked, setLooked] = useState<PlanAnswer>();
  const given = changes(defaults.workload, workload);
  const wrong = misfits(schema, workload);
  const blocked = busy || Object.keys(wrong).length > 0 || jsonWrong !== null;
  useFrom(setWorkload, setProblem);
  const empty = !Object.keys(schema.properties ?? {}).length;
  const labels = Object.fromEntries(label.split(",").map((pair) => pair.trim().split("=")).filter(([name]) => name).map(([name, ...rest]) => [name, rest.join("=")]));
  const attempt = async (act: () => Promise<void>) => {
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
      const started = await post<StartedExecution>("executions", { body: { path, version, workload: given, labels } });
      navigate(executionHref(started.execution_id!));
    });
  const look = () => attempt(async () => setLooked(await plan(path, version, given)));
  return (
    <div class="run">
      <form class="panel run-form" onSubmit={(event) => { event.preventDefault(); if (!blocked) void start(); }}>
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
          <div class="stack tight"><span class="small muted">The same in a terminal</span><CommandLine text={command("execute", version ? `${path}@${version}` : path, ...payload(given))} /></div>
        </div>
      </form>
      <aside class="stack">
        {looked && <Plan plan={looked} />}
        <Recent path={path} use={setWorkload} />
      </aside>
    </div>
  );
}

/** `?from=ID`: the inputs of that execution, once. */
function useFrom(use: (workload: Mapping) => void, fail: (problem: ProblemDocument) => void): void {
  const from = place.value.query.get("from");
  useEffect(() => {
    if (from) get<ExecutionDetail>(`executions/${from}`).then((detail) => use(detail.workload), (error: unknown) => error instanceof ApiError && fail(error.problem));
  }, [from]);
}

function Plan({ plan: shown }: { plan: PlanAnswer }) {
  return (
    <section class="panel" aria-live="polite">
      <header><h2>Dry run</h2></header>
      <div class="panel-body stack">
        {shown.error ? <Problem problem={shown.error} /> : <p class={`notice ${shown.waiting.length ? "waiting" : "completed"}`}>{shown.waiting.length ? "It would start, and then wait:" : "It would start. Nothing was recorded."}</p>}
        {shown.waiting.map((task) => <p key={`${task.step}.${task.task}`}><strong>{task.step}</strong> ({task.kind}): {task.reason} <span class="muted">{task.hint}</span></p>)}
        <dl class="facts">
          <dt>begins at</dt><dd>{shown.entry}</dd>
          {shown.version !== null && <><dt>version</dt><dd>{shown.version}</dd></>}
          {shown.credentials.length > 0 && <><dt>credentials</dt><dd>{shown.credentials.join(", ")}</dd></>}
        </dl>
        {shown.problems.map((item) => <p class="small" key={`${item.line}:${item.code}`}><code>{item.line}:{item.column} {item.code}</code> {item.message}. <span class="muted">{item.hint}</span></p>)}
      </div>
    </section>
  );
}

function Recent({ path, use }: { path: string; use: (workload: Mapping) => void }) {
  const recent = useResource((signal) => get<ExecutionItems>("executions", { query: { path, roots: true, limit: 8 }, signal }), [path]);
  const take = async (id: string) => {
    try {
      use((await get<ExecutionDetail>(`executions/${id}`)).workload);
      toast("Inputs taken over");
    } catch (error) {
      toast(asProblem(error).detail ?? "The inputs cannot be read", "bad");
    }
  };
  return (
    <section class="panel">
      <header><h2>Recent inputs</h2></header>
      <Loaded from={recent}>
        {(data) => {
          const own = data.executions.filter((item) => item.path === path);
          return own.length ? (
            <ul class="items">
              {own.map((item) => (
                <li class="item" key={item.execution_id}>
                  <a class="plain" href={executionHref(item.execution_id)}><Status status={item.status} /></a>
                  <span class="grow muted small"><Time at={item.started_at} only="relative" /></span>
                  <Button small onClick={() => void take(item.execution_id)}>Use its inputs</Button>
                </li>
              ))}
            </ul>
          ) : (
            <Empty title="Not run yet" action={<LinkButton small href={href(`/playbooks/${path}`)}>Look at the playbook</LinkButton>} />
          );
        }}
      </Loaded>
    </section>
  );
}
