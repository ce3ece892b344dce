import { useEffect, useState } from "preact/hooks";
import { ApiError, asProblem, get } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ExecutionDetail, ExecutionItems, PlanAnswer, ProblemDocument } from "../../api/types";
import type { Mapping } from "../../format/json";
import { href, place } from "../../router";
import { toast } from "../../shell/toasts";
import { Button, Empty, LinkButton, Loaded, PageHead, Problem } from "../../view/parts";
import { Status } from "../../view/status";
import { Time } from "../../view/time";
import { executionHref } from "../executions/execution-columns";
import { plan, RunForm } from "./form";

function splitVersion(text: string): { path: string; version: number | null } {
  const match = /^(.*)@(\d+)$/.exec(text);
  return match ? { path: match[1]!, version: Number(match[2]) } : { path: text, version: null };
}

export default function Run({ path: text }: { path: string }) {
  const { path, version } = splitVersion(text!);
  const first = useResource((signal) => plan({ path, version }, {}, signal), [path, version]);
  const before = <><a href={href("/playbooks")}>Playbooks</a><span>/</span><a href={href(`/playbooks/${text}`)}>{text}</a></>;
  return (
    <main id="main">
      <PageHead title={`Run ${text}`} before={before} />
      <Loaded from={first}>
        {(defaults) => (defaults.hash ? <Inputs key={text} path={path} version={version} defaults={defaults} /> : <Problem problem={defaults.error!} />)}
      </Loaded>
    </main>
  );
}

function Inputs({ path, version, defaults }: { path: string; version: number | null; defaults: PlanAnswer }) {
  const [workload, setWorkload] = useState<Mapping>(defaults.workload);
  const [problem, setProblem] = useState<ProblemDocument>();
  useFrom(setWorkload, setProblem);
  return (
    <div class="run">
      <div class="stack">
        {problem && <Problem problem={problem} />}
        <RunForm what={{ path, version }} defaults={defaults} workload={workload} setWorkload={setWorkload} />
      </div>
      <Recent path={path} use={setWorkload} />
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
