import { get, playbookRoute, segments } from "../../api/client";
import { useResource } from "../../api/resource";
import type { NetAnswer, PlaybookStatistics, PlaybookText, VersionList } from "../../api/types";
import { Net } from "../../net/net";
import { href, place, setQuery } from "../../router";
import { may } from "../../session";
import { Button, copyText, LinkButton, Loaded, PageHead, Tabs } from "../../view/parts";
import { SourceText } from "../../view/source";
import { Time } from "../../view/time";
import { Durations, Runs } from "./runs";
import { StepCard } from "./step-card";
import { Versions } from "./versions";

const TABS = [["net", "Net"], ["source", "Source"], ["versions", "Versions"], ["runs", "Runs"], ["durations", "Durations"]] as const;

export default function Playbook({ path: text }: { path: string }) {
  const playbook = useResource((signal) => get<PlaybookText>(playbookRoute(text!), { signal }), [text]);
  const path = text!.replace(/@\d+$/, "");
  const versions = useResource((signal) => get<VersionList>(`catalog/${segments(path)}/versions`, { signal }), [path]);
  const asked = place.value.query.get("tab") ?? "net";
  const tab = TABS.some(([name]) => name === asked) ? asked : "net";
  const before = <a href={href("/playbooks")}>Playbooks</a>;
  return (
    <main id="main">
      <PageHead title={text} before={before}>
        {!playbook.problem.value && may("operator") && <LinkButton kind="primary" icon="play" href={href(`/run/${text}`)}>Run</LinkButton>}
        {!playbook.problem.value && may("author") && <LinkButton icon="edit" href={href(`/edit/${text}`)}>Edit</LinkButton>}
      </PageHead>
      <Loaded from={playbook}>
        {(shown) => (
          <>
            <p class="muted small facts-line">version {shown.version}{shown.label && ` · label ${shown.label}`} · registered <Time at={shown.created_at} /> by {shown.created_by} · <code title={shown.hash}>{shown.hash.slice(0, 12)}</code></p>
            <Tabs label="Views of the playbook" chosen={tab} tabs={TABS.map(([name, title]) => ({ name, title, href: href(`/playbooks/${text}`, { tab: name === "net" ? null : name }) }))} />
            {tab === "net" && <NetTab text={text!} />}
            {tab === "source" && <SourceTab shown={shown} />}
            {tab === "versions" && <Loaded from={versions}>{(list) => <Versions path={path} shown={shown.version} versions={list.versions} reload={versions.reload} />}</Loaded>}
            {(tab === "runs" || tab === "durations") && <StatisticsTab path={path} tab={tab} />}
          </>
        )}
      </Loaded>
    </main>
  );
}

function NetTab({ text }: { text: string }) {
  const versioned = useResource((signal) => get<NetAnswer>(`${playbookRoute(text)}/net`, { signal }), [text]);
  const step = place.value.query.get("step");
  return (
    <Loaded from={versioned}>
      {(net) => {
        const box = net.boxes.find((item) => item.step === step);
        return (
          <div class="net-page">
            <div class="panel net-panel"><Net net={net} selected={box?.step ?? null} onSelect={(chosen) => setQuery({ step: chosen }, "replace")} label={`Net of ${text}`} /></div>
            <aside class="panel net-side"><StepCard net={net} box={box ?? null} sourceHref={(line) => href(`/playbooks/${text}`, { tab: "source", line })} /></aside>
          </div>
        );
      }}
    </Loaded>
  );
}

function SourceTab({ shown }: { shown: PlaybookText }) {
  const as = place.value.query.get("as") === "canonical" ? "canonical" : "source";
  const line = Number(place.value.query.get("line")) || null;
  const differs = shown.canonical !== shown.source;
  return (
    <section class="panel">
      <header>
        <h2>{as === "source" ? "As it was registered" : "As executions run it"}</h2>
        <div class="row push">
          {differs && <Button small kind="bare" onClick={() => setQuery({ as: as === "source" ? "canonical" : null })}>{as === "source" ? "As executions run it" : "As it was registered"}</Button>}
          <Button small kind="bare" icon="copy" onClick={() => void copyText(shown[as])}>Copy</Button>
        </div>
      </header>
      <SourceText text={shown[as]} line={as === "source" ? line : null} />
    </section>
  );
}

function StatisticsTab({ path, tab }: { path: string; tab: "runs" | "durations" }) {
  const statistics = useResource((signal) => get<PlaybookStatistics>(`catalog/${segments(path)}/statistics`, { signal }), [path], ["executions"]);
  return <Loaded from={statistics}>{(data) => (tab === "runs" ? <Runs statistics={data} /> : <Durations statistics={data} />)}</Loaded>;
}
