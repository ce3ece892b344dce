/** One execution: the net, the time and the details together, at the event that the slider chooses. */
import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import { NARROW, useMedia } from "../../list/media";
import { Net } from "../../net/net";
import { href, queryValue, setQuery } from "../../router";
import { late } from "../../view/late";
import { PageHead, Problem, Segments } from "../../view/parts";
import { Details } from "./details";
import { Head, Summary } from "./head";
import { ExecutionModel } from "./model";
import { Slider } from "./slider";
import { TimePanel } from "./time-panel";

const Console = late(async () => (await import("./late-panels")).Console);
const Events = late(async () => (await import("./late-panels")).Events);
const OutlineTree = late(async () => (await import("./late-panels")).OutlineTree);
const LOWER = [
  ["time", "Time"],
  ["events", "Events"],
  ["console", "Console"],
] as const;
const PHONE = [["net", "Net"], ...LOWER] as const;
type Lower = (typeof LOWER)[number][0];
type Phone = (typeof PHONE)[number][0];

export default function ExecutionPage({ id }: { id: string }) {
  const model = useMemo(() => new ExecutionModel(id), [id]);
  useLayoutEffect(() => model.start(), [model]);
  return <ExecutionView model={model} />;
}

export function ExecutionView({ model }: { model: ExecutionModel }) {
  const narrow = useMedia(NARROW);
  const detail = model.detail.value;
  const problem = model.problem.value;
  const title = detail ? `${detail.playbook} ${detail.status}` : "";
  useEffect(() => {
    if (title) document.title = `${title} · NoETL`;
  }, [title]);
  if (!detail)
    return (
      <main id="main">
        {problem ? (
          <>
            <PageHead title={<>Execution <code>{model.id}</code></>} before={<a href={href("/executions")}>Executions</a>} />
            <Problem problem={problem} retry={() => void model.refresh()} />
          </>
        ) : (
          <p class="loading" role="status">Loading…</p>
        )}
      </main>
    );
  return (
    <main id="main" class={`execution ${narrow ? "phone" : "fill"}`}>
      {problem && <Problem problem={problem} retry={() => void model.refresh()} />}
      <Head model={model} detail={detail} />
      <Summary model={model} detail={detail} />
      {narrow ? <PhonePanels model={model} /> : <Panels model={model} />}
      <Slider model={model} />
    </main>
  );
}

function Panels({ model }: { model: ExecutionModel }) {
  const options = LOWER.filter(([name]) => name !== "console" || !model.isExported);
  const lower = chosen(options, queryValue("view"), "time");
  return (
    <div class="execution-panels">
      <NetPanel model={model} />
      <section class="panel lower" aria-label={LOWER.find(([name]) => name === lower)![1]}>
        <header><Segments label="Below the net" options={options} chosen={lower} choose={(view: Lower) => setQuery({ view: view === "time" ? null : view })} /></header>
        <Lower model={model} name={lower} />
      </section>
      <Details model={model} />
    </div>
  );
}

function PhonePanels({ model }: { model: ExecutionModel }) {
  const name = chosen(PHONE, queryValue("view"), "net");
  return (
    <div class="execution-panels">
      <Segments label="Show" options={PHONE} chosen={name} choose={(view: Phone) => setQuery({ view: view === "net" ? null : view })} />
      {name === "net" ? <NetPanel model={model} /> : <section class="panel lower" aria-label={name}><Lower model={model} name={name} /></section>}
      <Details model={model} />
    </div>
  );
}

function Lower({ model, name }: { model: ExecutionModel; name: Lower }) {
  if (name === "events") return <Events model={model} />;
  if (name === "console") return <Console model={model} />;
  return <TimePanel model={model} />;
}

function NetPanel({ model }: { model: ExecutionModel }) {
  const net = model.net.value;
  const problem = model.netProblem.value;
  const outline = queryValue("outline") === "1";
  const step = model.step.value;
  // Where the net stood may be far from that step: it is to show it when it comes back.
  const choose = (name: string) => {
    model.select(name);
    setQuery({ zoom: null });
  };
  return (
    <section class="panel execution-net" aria-label="Net">
      <div class="net-choice">
        <Segments label="Show the net as" options={[["net", "Net"], ["outline", "Outline"]]} chosen={outline ? "outline" : "net"} choose={(as) => setQuery({ outline: as === "outline" ? 1 : null })} />
      </div>
      {problem && <Problem problem={problem} />}
      {!net && !problem && <p class="loading" role="status">Drawing the net…</p>}
      {net && outline && <OutlineTree net={net} state={model.state.value} selected={step} onSelect={choose} />}
      {net && !outline && <Net net={net} state={model.state} selected={step} onSelect={(name) => model.select(name)} label="Net of the execution" />}
    </section>
  );
}

function chosen<T extends string>(options: readonly (readonly [T, string])[], asked: string | null, otherwise: T): T {
  return options.find(([name]) => name === asked)?.[0] ?? otherwise;
}
