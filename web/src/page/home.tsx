import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { get } from "../api/client";
import { useResource } from "../api/resource";
import type { FailureGroup, HourCount, LostWorker, Overview, PlaybookList, WaitItem } from "../api/types";
import { plural } from "../format/number";
import { instant, partsOf } from "../format/time";
import { zone } from "../preferences";
import { href } from "../router";
import { may } from "../session";
import { toast } from "../shell/toasts";
import { CommandLine, Empty, LinkButton, Loaded, PageHead, Button } from "../view/parts";
import { Status, StatusShape } from "../view/status";
import { Duration, Time } from "../view/time";
import type { BulkDialog } from "./executions/bulk";
import { executionHref } from "./executions/execution-columns";
import { readFilter, type ListFilter } from "./executions/filter";

/** So many are shown: what failed is not to be looked for behind them. */
const WAITS = 5;

export default function Home() {
  const overview = useResource((signal) => get<Overview>("overview", { signal }), [], ["executions", "waits", "workers"]);
  return (
    <main id="main">
      <PageHead title="Home">
        {may("operator") && <LinkButton kind="primary" icon="play" href={href("/playbooks")}>Run a playbook</LinkButton>}
      </PageHead>
      <Loaded from={overview}>{(data) => (isNew(data) ? <Welcome playbooks={data.playbooks} /> : <Board data={data} reload={overview.reload} />)}</Loaded>
    </main>
  );
}

function isNew(data: Overview): boolean {
  return !data.running && !data.paused && !data.failures.length && !data.waits.length && data.hours.every((hour) => !total(hour));
}

function total(hour: HourCount): number {
  return hour.running + hour.completed + hour.failed + hour.cancelled;
}

function Board({ data, reload }: { data: Overview; reload: () => Promise<void> }) {
  const [asked, setAsked] = useState<{ group: FailureGroup; Dialog: typeof BulkDialog } | null>(null);
  const waits = data.waits.slice(0, WAITS);
  const retry = (group: FailureGroup) =>
    void import("./executions/bulk").then(
      (module) => setAsked({ group, Dialog: module.BulkDialog }),
      () => toast("This part of the page cannot be loaded. The server may have a new release: load the page again.", "bad"),
    );
  const close = (done: boolean) => {
    setAsked(null);
    if (done) void reload();
  };
  const needs = data.failures.length + data.waiting + data.lost_workers.length + data.stuck.length;
  const failed = data.hours.reduce((sum, hour) => sum + hour.failed, 0);
  return (
    <div class="home">
      <ul class="tiles">
        <Tile title={needs === 1 ? "needs you" : "need you"} count={needs} tone={needs ? "waiting" : "completed"} />
        <Tile title="running" count={data.running} tone="running" to={href("/executions", { status: "running" })} />
        <Tile title="paused" count={data.paused} tone="idle" to={href("/executions", { status: "paused" })} />
        <Tile title="failed in 24 h" count={failed} tone={failed ? "failed" : "idle"} to={href("/executions", { status: "failed", since: "24h" })} />
      </ul>
      <section class="panel attention">
        <header><h2>Needs attention</h2><span class="push small muted">the last 24 hours</span></header>
        {needs ? (
          <ul class="items">
            {data.stuck.map((item) => (
              <Item key={item.execution_id} status="waiting" title={item.path || "inline playbook"} to={executionHref(item.execution_id)} note={<>no worker can take what it wants to run</>} action={<LinkButton small href={href("/workers")}>See the queue</LinkButton>} />
            ))}
            {data.lost_workers.map((worker) => <LostRow key={worker.worker + worker.lost_at} worker={worker} />)}
            {data.failures.map((group) => <FailureRow key={group.newest} group={group} retry={() => retry(group)} />)}
            {waits.map((wait) => <WaitRow key={`${wait.execution_id}/${wait.wait}`} wait={wait} />)}
            {data.waiting > waits.length && <li class="item"><a href={href("/inbox")}>{plural(data.waiting - waits.length, "more wait")} in the inbox</a></li>}
          </ul>
        ) : (
          <p class="panel-body muted row"><span class="completed-text"><StatusShape status="completed" /></span>Nothing failed, nothing waits for a person, no worker was lost.</p>
        )}
      </section>
      <section class="panel">
        <header><h2>Running now</h2>{data.executions.length > 0 && <a class="push small" href={href("/executions", { status: "running" })}>all</a>}</header>
        {data.executions.length ? (
          <ul class="items">
            {data.executions.slice(0, 10).map((item) => (
              <li class="item" key={item.execution_id}>
                <Status status={item.status} />
                <a class="plain cut grow" href={executionHref(item.execution_id)}>{item.path || "inline playbook"}</a>
                <span class="muted"><Duration from={item.started_at} until={item.ended_at} known={item.duration_ms} /></span>
              </li>
            ))}
          </ul>
        ) : (
          <p class="panel-body muted">Nothing runs at the moment.</p>
        )}
      </section>
      <section class="panel wide">
        <header><h2>Last 24 hours</h2><span class="push small muted">by hour of start, in {zone.value}</span></header>
        <Hours hours={data.hours} />
      </section>
      {asked && <asked.Dialog act="retry" target={{ filter: filterOf(asked.group) }} close={close} />}
    </div>
  );
}

function Tile({ title, count, tone, to }: { title: string; count: number; tone: string; to?: string }) {
  const body = <><strong class={`numbers ${tone}-text`}>{count}</strong> <span>{title}</span></>;
  return <li>{to ? <a class="tile" href={to}>{body}</a> : <div class="tile">{body}</div>}</li>;
}

function Item({ status, title, to, note, action }: { status: string; title: string; to: string; note: ComponentChildren; action?: ComponentChildren }) {
  return (
    <li class="item">
      <span class={`status ${status}`}><StatusShape status={status} /><span class="hidden-text">{status}</span></span>
      <div class="grow">
        <a class="plain" href={to}>{title}</a>
        <div class="small muted item-note">{note}</div>
      </div>
      {action && <div class="item-actions">{action}</div>}
    </li>
  );
}

function WaitRow({ wait }: { wait: WaitItem }) {
  const note = <>{wait.path} · {wait.step} · <Time at={wait.since} only="relative" />{wait.until && <> · gives up <Time at={wait.until} only="relative" /></>}</>;
  return <Item status="waiting" title={wait.title || (wait.kind === "gate" ? `The gate of ${wait.step} waits for ${wait.signal || "a signal"}` : `Waits for the signal ${wait.signal}`)} to={href("/inbox", { wait: `${wait.execution_id}/${wait.wait}` })} note={note} action={<LinkButton small href={href("/inbox", { wait: `${wait.execution_id}/${wait.wait}` })}>{wait.answerable ? "Answer" : "Open"}</LinkButton>} />;
}

function LostRow({ worker }: { worker: LostWorker }) {
  return <Item status="failed" title={`Worker ${worker.worker} went silent`} to={href("/workers")} note={<>it had {plural(worker.runs, "run")} · <Time at={worker.lost_at} only="relative" /></>} action={<LinkButton small href={href("/workers")}>See workers</LinkButton>} />;
}

/** Those of the group, as the list of executions finds them: by playbook, kind and message of the error. */
function filterOf(group: FailureGroup): ListFilter {
  const message = group.message.split("\n")[0]!.slice(0, 200);
  return { ...readFilter(new URLSearchParams()), q: message, status: "failed", path: group.path, error_kind: group.kind, since: "24h", children: true };
}

function FailureRow({ group, retry }: { group: FailureGroup; retry: () => void }) {
  const note = <><span class="message" title={group.message}>{group.message}</span>{group.kind} · {group.step && <>{group.step} · </>}<Time at={group.last_at} only="relative" /></>;
  return (
    <Item
      status="failed"
      title={`${group.path || "inline playbook"}${group.count > 1 ? ` ×${group.count}` : ""}`}
      to={group.count > 1 ? href("/executions", { ...filterOf(group) }) : executionHref(group.newest)}
      note={note}
      action={
        <>
          <LinkButton small href={executionHref(group.newest)}>Why</LinkButton>
          {may("operator") && <Button small onClick={retry}>Retry…</Button>}
        </>
      }
    />
  );
}

const KINDS = ["completed", "failed", "cancelled", "running"] as const;

/** Bars of an hour each; the same numbers are in a table for who cannot see them. */
function Hours({ hours }: { hours: readonly HourCount[] }) {
  const most = Math.max(1, ...hours.map(total));
  const hourOf = (hour: HourCount) => partsOf(instant(hour.at), zone.value).clock.slice(0, 5);
  return (
    <div class="panel-body">
      <div class="hours" aria-hidden="true">
        {hours.map((hour) => (
          <div class="hour" key={hour.at} title={`${hourOf(hour)}: ${KINDS.map((kind) => `${hour[kind]} ${kind}`).join(", ")}`}>
            <div class="bar" style={{ height: `${(total(hour) / most) * 100}%` }}>
              {KINDS.map((kind) => hour[kind] > 0 && <span key={kind} class={kind} style={{ flexGrow: hour[kind] }} />)}
            </div>
          </div>
        ))}
      </div>
      <div class="hour-names" aria-hidden="true">{hours.map((hour, index) => index % 6 === 0 && <span key={hour.at}>{hourOf(hour)}</span>)}<span>now</span></div>
      <ul class="legend" aria-hidden="true">{KINDS.map((kind) => <li key={kind}><span class={`swatch ${kind}`} />{kind}</li>)}<li class="push">most in an hour: {most}</li></ul>
      <table class="hidden-text">
        <caption>Executions by hour of start</caption>
        <thead><tr><th>hour</th>{KINDS.map((kind) => <th key={kind}>{kind}</th>)}</tr></thead>
        <tbody>{hours.filter(total).map((hour) => <tr key={hour.at}><th>{hourOf(hour)}</th>{KINDS.map((kind) => <td key={kind}>{hour[kind]}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** Nothing was run yet: three playbooks that can be, or how to get some. */
function Welcome({ playbooks }: { playbooks: number }) {
  const list = useResource((signal) => get<PlaybookList>("catalog", { query: { limit: 200 }, signal }), [playbooks]);
  const known = list.data.value?.playbooks ?? [];
  const FIRST = ["quickstart", "fan_out_join", "wait_for_signal"];
  const preferred = FIRST.flatMap((name) => known.filter((item) => item.path.endsWith(`/${name}`)));
  const shown = [...new Set([...preferred, ...known])].slice(0, 3);
  if (!playbooks)
    return (
      <Empty title="Welcome. There is no playbook yet" action={may("author") ? <LinkButton kind="primary" icon="edit" href={href("/edit")}>Write one</LinkButton> : undefined}>
        A playbook says in YAML what to run, in which order and when. Write one here, or serve a folder of them:
        <CommandLine text="noetl dev examples/" />
      </Empty>
    );
  return (
    <section class="stack">
      <h2>Nothing was run in the last 24 hours. Try one of these:</h2>
      <div class="cards">
        {shown.map((item) => (
          <article class="panel card" key={item.path}>
            <h3>{item.path}</h3>
            <p class="muted small">version {item.version}{item.label && `, ${item.label}`}</p>
            <div class="row"><LinkButton kind="primary" icon="play" href={href(`/run/${item.path}`)}>Run</LinkButton><LinkButton href={href(`/playbooks/${item.path}`)}>Look at it</LinkButton></div>
          </article>
        ))}
      </div>
      <p><a href={href("/playbooks")}>All {plural(playbooks, "playbook")}</a></p>
    </section>
  );
}
