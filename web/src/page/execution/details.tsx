import { queryValue, setQuery } from "../../router";
import { late } from "../../view/late";
import { Button } from "../../view/parts";
import { Data } from "./data";
import type { ExecutionModel } from "./model";
import { Why } from "./why";

const Logs = late(async () => (await import("./late-panels")).Logs);
const Attempts = late(async () => (await import("./late-panels")).Attempts);
const TABS = [
  ["why", "Why"],
  ["data", "Data"],
  ["logs", "Logs"],
  ["attempts", "Attempts"],
] as const;
type Tab = (typeof TABS)[number][0];

/** The chosen step, or the execution as a whole, at the event. */
export function Details({ model }: { model: ExecutionModel }) {
  const step = model.step.value;
  const asked = queryValue("tab") as Tab | null;
  const tabs = step === null ? TABS.filter(([name]) => name === "data" || name === "logs") : TABS;
  const tab = tabs.find(([name]) => name === asked)?.[0] ?? tabs[0]![0];
  const choose = (name: Tab) => setQuery({ tab: name });
  const key = (event: KeyboardEvent) => {
    const direction = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!direction) return;
    const index = tabs.findIndex(([name]) => name === tab);
    const next = tabs[(index + direction + tabs.length) % tabs.length]![0];
    choose(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <section class="panel details" aria-label={step === null ? "The execution" : `Step ${step}`}>
      <header>
        <h2 class="cut">{step ?? "The whole execution"}</h2>
        {step !== null && <Button small kind="bare" icon="close" class="push" aria-label="Close the step" title="Close the step" onClick={() => model.select(null)} />}
      </header>
      <div class="details-tabs" role="tablist" aria-label="Details" onKeyDown={key}>
        {tabs.map(([name, title]) => (
          <button type="button" key={name} role="tab" id={`tab-${name}`} aria-selected={name === tab} aria-controls="details" tabIndex={name === tab ? 0 : -1} onClick={() => choose(name)}>{title}</button>
        ))}
      </div>
      <div class="details-body" id="details" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "why" && step !== null && <Why model={model} step={step} />}
        {tab === "data" && <Data model={model} step={step} />}
        {tab === "logs" && <Logs key={step ?? ""} model={model} step={step} />}
        {tab === "attempts" && step !== null && <Attempts model={model} step={step} />}
        {step === null && tab === "data" && <p class="muted small hint">Choose a step in the net or below to see why it ran, or did not.</p>}
      </div>
    </section>
  );
}
