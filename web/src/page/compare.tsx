/** Two executions side by side, from the first event that differs. */
import type { ComponentChildren } from "preact";
import { get, segments } from "../api/client";
import { useResource } from "../api/resource";
import type { Condition, DiffSide, EventSide, ExecutionDiff, GuardDiff, StepDiff, ValueDiff } from "../api/types";
import { command } from "../format/command";
import { oneLine } from "../format/json";
import { grouped, plural, shortId } from "../format/number";
import { duration } from "../format/time";
import { href } from "../router";
import { CommandLine, Loaded, PageHead } from "../view/parts";
import { bare, Prose } from "../view/prose";
import { Status } from "../view/status";
import { Time } from "../view/time";

export default function ComparePage({ a, b }: { a: string; b: string }) {
  const diff = useResource((signal) => get<ExecutionDiff>(segments("executions", a, "diff", b), { signal }), [a, b]);
  return (
    <main id="main" class="compare">
      <PageHead title="Compare" before={<a href={href("/executions")}>Executions</a>} />
      <Loaded from={diff}>{(data) => <Difference data={data} />}</Loaded>
    </main>
  );
}

function Difference({ data }: { data: ExecutionDiff }) {
  const steps = data.steps.filter((step) => step.differs);
  const same = data.steps.length - steps.length;
  return (
    <div class="stack">
      <div class="compare-sides">
        <Side name="A" side={data.a} />
        <Side name="B" side={data.b} />
      </div>
      {!data.same_playbook && <p class="notice">They run different documents: <code>{data.a.hash.slice(0, 12)}</code> and <code>{data.b.hash.slice(0, 12)}</code>.</p>}
      <FirstDifference data={data} />
      <Section title="Steps" count={steps.length} none="Every step came to the same.">
        {steps.map((step) => <StepRow key={step.step} step={step} a={data.a.execution_id} b={data.b.execution_id} />)}
        {same > 0 && <p class="muted small">{plural(same, "other step")} came to the same.</p>}
      </Section>
      <Section title="Guards" count={data.guards.length} none="Every guard came out the same.">
        {data.guards.map((guard) => <GuardRow key={`${guard.step} ${guard.arc} ${guard.occurrence}`} guard={guard} />)}
      </Section>
      <Section title="Values" count={data.values.length} none="Workload, ctx and result are the same.">
        {data.values.map((value) => <ValueRow key={value.path} value={value} />)}
      </Section>
      <CommandLine text={command("executions", "diff", data.a.execution_id, data.b.execution_id)} />
    </div>
  );
}

function Side({ name, side }: { name: string; side: DiffSide }) {
  return (
    <section class="panel compare-side" aria-label={`Execution ${name}`}>
      <p class="row wrap">
        <b class="compare-name">{name}</b>
        <a href={href(`/executions/${side.execution_id}`)}>{side.playbook} <code>{shortId(side.execution_id)}</code></a>
        <Status status={side.status} />
      </p>
      <p class="muted small">
        {plural(side.events, "event")} · {duration(side.duration_ms)} · began <Time at={side.started_at} />
        {side.forked_from && <> · forked from <a href={href(`/executions/${side.forked_from}`)}><code>{shortId(side.forked_from)}</code></a></>}
      </p>
    </section>
  );
}

function FirstDifference({ data }: { data: ExecutionDiff }) {
  const { divergence } = data;
  if (!divergence) return <p class="notice completed" role="status">They are the same but for times, ids and who did it.</p>;
  return (
    <section class="panel" aria-label="First difference">
      <header>
        <h2>First difference</h2>
        <span class="muted">{data.common ? `the first ${grouped(data.common)} events are the same` : "from the first event on"}</span>
      </header>
      <div class="panel-body stack">
        <p><Prose text={divergence.what} /> {divergence.path && !divergence.what.includes(divergence.path) && <code>{divergence.path}</code>}</p>
        <div class="compare-sides">
          <EventCard name="A" execution={data.a.execution_id} event={divergence.a} path={divergence.path} />
          <EventCard name="B" execution={data.b.execution_id} event={divergence.b} path={divergence.path} />
        </div>
      </div>
    </section>
  );
}

function EventCard({ name, execution, event, path }: { name: string; execution: string; event: EventSide | null; path: string }) {
  return (
    <div class="compare-cell">
      <b class="compare-name">{name}</b>
      {event ? (
        <div class="grow">
          <p><a href={href(`/executions/${execution}`, { at: event.seq, step: event.step })}>#{event.seq} {event.name}</a>{event.step && <span class="muted"> · {event.step}</span>}</p>
          {event.value != null ? <pre tabIndex={0}>{pretty(event.value)}</pre> : path && <p class="muted">no value at <code>{path}</code></p>}
        </div>
      ) : (
        <p class="muted">nothing to set against it</p>
      )}
    </div>
  );
}

function Section({ title, count, none, children }: { title: string; count: number; none: string; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <header><h2>{title}</h2><span class="muted">{count ? plural(count, "difference") : none}</span></header>
      {count > 0 && <div class="panel-body compare-rows">{children}</div>}
    </section>
  );
}

function StepRow({ step, a, b }: { step: StepDiff; a: string; b: string }) {
  const ids = [a, b] as const;
  return (
    <div class="compare-row">
      <h3>{step.step}</h3>
      {([0, 1] as const).map((side) => (
        <div class="compare-cell" key={side}>
          <b class="compare-name">{side ? "B" : "A"}</b>
          {step.status[side] === null ? (
            <span class="muted">not reached</span>
          ) : (
            <div class="grow">
              <p class="row wrap">
                <Status status={step.status[side]!} />
                <span class="muted numbers">{plural(step.runs[side], "run")} · {duration(step.worked[side] / 1_000)}</span>
                <a class="small" href={href(`/executions/${ids[side]}`, { step: step.step })}>why</a>
              </p>
              {step.error[side] && <p class="failed-text">{String(step.error[side]!.kind ?? "")} {String(step.error[side]!.message ?? "")}</p>}
              {step.result[side] != null && <pre tabIndex={0}>{pretty(step.result[side])}</pre>}
            </div>
          )}
        </div>
      ))}
    </div>
  );
}

function GuardRow({ guard }: { guard: GuardDiff }) {
  const text = guard.a?.text ?? guard.b?.text ?? "";
  return (
    <div class="compare-row">
      <h3>{guard.step}{guard.arc !== null ? ` → ${guard.arc}` : " (admission)"}{guard.occurrence > 1 && <span class="muted"> run {guard.occurrence}</span>} <code>{bare(text)}</code></h3>
      <GuardSide name="A" condition={guard.a} />
      <GuardSide name="B" condition={guard.b} />
    </div>
  );
}

function GuardSide({ name, condition }: { name: string; condition: Condition | null }) {
  const word = !condition || condition.holds == null ? (condition?.error ? `failed: ${condition.error}` : "not asked") : condition.holds ? "✓ held" : "✗ false";
  return (
    <div class="compare-cell">
      <b class="compare-name">{name}</b>
      <div class="grow">
        <p>{word}</p>
        {(condition?.reads ?? []).map((read) => (
          <p key={read.path} class="small"><code>{read.path}</code> <span class="muted">{read.missing ? "is not there" : <>= <code>{oneLine(read.value, 120)}</code></>}</span></p>
        ))}
      </div>
    </div>
  );
}

function ValueRow({ value }: { value: ValueDiff }) {
  const cell = (name: "A" | "B") => {
    const missing = value.missing === name.toLowerCase();
    return (
      <div class="compare-cell">
        <b class="compare-name">{name}</b>
        {missing ? <span class="muted">is not there</span> : <code class="grow">{oneLine(name === "A" ? value.a : value.b, 400)}</code>}
      </div>
    );
  };
  return (
    <div class="compare-row">
      <h3><code>{value.path}</code></h3>
      {cell("A")}
      {cell("B")}
    </div>
  );
}

function pretty(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
