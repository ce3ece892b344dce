import { get, post, segments } from "../api/client";
import { useResource } from "../api/resource";
import type { DrainAnswer, QueueAnswer, QueuePool, WorkerItem, WorkerList } from "../api/types";
import { command } from "../format/command";
import { plural } from "../format/number";
import { duration } from "../format/time";
import { may } from "../session";
import { confirm } from "../shell/dialog";
import { toast } from "../shell/toasts";
import { Button, CommandLine, Empty, Loaded, PageHead } from "../view/parts";
import { Prose } from "../view/prose";
import { Status } from "../view/status";
import { executionHref } from "./executions/execution-columns";

export default function Workers() {
  const both = useResource(
    (signal) => Promise.all([get<WorkerList>("workers", { signal }), get<QueueAnswer>("queue", { signal })]),
    [],
    ["workers", "queue"],
  );
  return (
    <main id="main" class="stack">
      <PageHead title="Workers" />
      <Loaded from={both}>
        {([{ workers }, { pools }]) => (
          <>
            {workers.length ? (
              <div class="cards">{workers.map((worker) => <WorkerCard key={worker.session} worker={worker} reload={both.reload} />)}</div>
            ) : (
              <Empty title="No worker is connected">Runs wait until one comes. <CommandLine text="noetl worker start --server URL" /></Empty>
            )}
            <h2>Queue</h2>
            {pools.length ? pools.map((pool) => <Pool key={pool.pool} pool={pool} />) : <Empty title="No pool yet">A pool is there as soon as a worker serves it, or a run waits for it.</Empty>}
          </>
        )}
      </Loaded>
    </main>
  );
}

function WorkerCard({ worker, reload }: { worker: WorkerItem; reload: () => Promise<void> }) {
  const drains = worker.slots === 0;
  const silent = worker.heartbeat_age > 10;
  const drain = () =>
    confirm({
      title: `Drain ${worker.worker}?`,
      text: "It ends what it runs, takes nothing more, and leaves.",
      verb: "Drain it",
      danger: true,
      command: command("worker", "stop", worker.worker),
      act: async () => {
        await post<DrainAnswer>(`workers/${segments(worker.session)}/drain`);
        toast(`${worker.worker} drains`);
        await reload();
      },
    });
  return (
    <article class="panel card">
      <div class="row">
        <h2 class="grow cut" title={worker.session}>{worker.worker}</h2>
        <Status status={silent ? "failed" : drains ? "paused" : worker.runs.length ? "running" : "completed"} word={silent ? "silent" : drains ? "drains" : worker.runs.length ? "working" : "free"} />
      </div>
      <div class="row"><meter class="slots" min={0} max={Math.max(1, worker.slots)} value={worker.runs.length} aria-label="Slots in use" /><span class="muted small nowrap numbers">{worker.runs.length} of {plural(worker.slots, "slot")}</span></div>
      <dl class="facts small">
        <dt>pools</dt><dd>{worker.pools.join(", ") || "all"}</dd>
        <dt>heartbeat</dt><dd class="numbers">{duration(worker.heartbeat_age * 1_000)} ago</dd>
        <dt>release</dt><dd>{worker.release}</dd>
        {worker.token && <><dt>token</dt><dd>{worker.token}</dd></>}
      </dl>
      <details class="small"><summary>{plural(worker.kinds.length, "kind")} of tasks</summary><p class="muted">{worker.kinds.join(", ")}</p></details>
      {worker.runs.length > 0 && (
        <ul class="small">{worker.runs.slice(0, 8).map((run) => <li key={run.run}><a href={executionHref(run.execution_id)}>{run.step ?? "run"}</a></li>)}{worker.runs.length > 8 && <li class="muted">and {plural(worker.runs.length - 8, "more run")}</li>}</ul>
      )}
      {may("operator") && !drains && <div><Button small onClick={drain}>Drain…</Button></div>}
    </article>
  );
}

function Pool({ pool }: { pool: QueuePool }) {
  return (
    <section class="panel">
      <header>
        <h3>{pool.pool}</h3>
        <span class="small muted">{plural(pool.workers, "worker")}, {pool.claimed} of {plural(pool.slots, "slot")} in use</span>
        <span class="push small">{pool.depth ? <>{plural(pool.depth, "run")} waiting, the oldest {duration(pool.age * 1_000)}</> : <span class="muted">nothing waits</span>}</span>
      </header>
      {pool.problem && <p class="panel-body notice waiting"><Prose text={pool.problem} /></p>}
      {pool.runs.length > 0 && (
        <div class="scroll-x" tabIndex={0} role="region" aria-label={`Runs that wait in ${pool.pool}`}>
          <table class="plain-table cards-on-phone">
            <thead><tr><th>Playbook</th><th>Step</th><th>Kinds</th><th class="right">Priority</th><th class="right">Waits for</th><th>Why</th></tr></thead>
            <tbody>
              {pool.runs.map((run) => (
                <tr key={run.run}>
                  <td><a href={executionHref(run.execution_id)}>{run.path || "inline playbook"}</a></td>
                  <td>{run.step}</td>
                  <td>{run.kinds.join(", ")}</td>
                  <td class="right" data-label="priority">{run.priority}</td>
                  <td class="right fixed" data-label="waits for">{duration(run.age * 1_000)}</td>
                  <td class="prose wide"><Prose text={run.reason} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
