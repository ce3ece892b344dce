import type { ComponentChildren } from "preact";
import { get } from "../../api/client";
import type { Condition, IncomingArc, RunExplanation, StepExplanation, WaitingJoin } from "../../api/types";
import { plural } from "../../format/number";
import { href } from "../../router";
import { ConditionView } from "../../view/condition";
import { Button, Problem } from "../../view/parts";
import { bare, Prose } from "../../view/prose";
import { Status } from "../../view/status";
import { useAnswer } from "./answer";
import type { ExecutionModel } from "./model";
import { SourceLine } from "./source-line";

const VERDICTS: Readonly<Record<StepExplanation["verdict"], [status: string, words: string]>> = {
  ran: ["completed", "ran"],
  failed: ["failed", "failed"],
  running: ["running", "is running"],
  waiting: ["waiting", "is waiting"],
  denied: ["not_admitted", "was not admitted"],
  not_reached: ["idle", "did not run"],
};

/** Why a step ran, or did not: the chain of arcs to it, their guards, and the values that these read. */
export function Why({ model, step }: { model: ExecutionModel; step: string }) {
  const at = model.at.value;
  const answer = useAnswer(at ? `${model.id} why ${step} ${at}` : null, (signal) =>
    get<StepExplanation>(model.route("explanation"), { query: { step, at }, signal }),
  );
  const explanation = answer.data?.step === step ? answer.data : undefined;
  if (answer.problem) return <Problem problem={answer.problem} />;
  if (!explanation) return <p class="loading" role="status">Loading…</p>;
  const [status, words] = VERDICTS[explanation.verdict];
  const runs = explanation.runs ?? [];
  const run = runs[runs.length - 1];
  const held = model.held.value.filter((item) => item.step === step);
  return (
    <div class="why stack" aria-busy={!answer.current}>
      <p class="why-verdict">
        <Status status={status} word={`${step} ${words}`} /> <SourceLine model={model} line={explanation.line} />
      </p>
      <p><Prose text={sentence(explanation.reason)} /></p>
      {held.length > 0 && <p class="waiting-text"><Prose text={held.map((item) => sentence(item.reason ?? "")).join(" ")} /> <a href={href("/workers")}>See the queue</a></p>}
      {!!explanation.stopped_at?.length && (
        <Part title="Where the way ended">{explanation.stopped_at.map((arc) => <Arc key={`${arc.source} ${arc.arc}`} model={model} arc={arc} />)}</Part>
      )}
      {!!explanation.chain?.length && <Chain model={model} explanation={explanation} />}
      {(explanation.parked ?? []).map((token) => (
        <Part key={token.arrival.token} title={`A token is ${token.mode === "parked" ? "parked" : "held"} before it`}>
          {(token.rules ?? []).map((rule, index) => <Guard key={index} model={model} condition={rule} />)}
        </Part>
      ))}
      {(explanation.joins ?? []).map((join) => <Join key={join.line} join={join} model={model} />)}
      {(explanation.discarded ?? []).map((token) => (
        <Part key={token.seq} title={`A token was discarded: ${token.reason}`}>
          {(token.rules ?? []).map((rule, index) => <Guard key={index} model={model} condition={rule} />)}
        </Part>
      ))}
      {run && <LastRun model={model} run={run} count={explanation.run_count ?? runs.length} />}
      {!!explanation.arcs?.length && !explanation.stopped_at?.length && (
        <details class="why-more">
          <summary>All arcs that lead here ({explanation.arcs.length})</summary>
          {explanation.arcs.map((arc) => <Arc key={`${arc.source} ${arc.arc}`} model={model} arc={arc} />)}
        </details>
      )}
    </div>
  );
}

function Part({ title, children }: { title: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="why-part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** From the beginning to here; of a long one the beginning and the end. */
function Chain({ model, explanation }: { model: ExecutionModel; explanation: StepExplanation }) {
  const chain = explanation.chain ?? [];
  const cut = chain.length > 14 ? chain.length - 12 : 0;
  const shown = cut ? [chain[0]!, ...chain.slice(1 + cut)] : chain;
  return (
    <Part title="How it came here">
      <ol class="why-chain">
        {shown.map((link, index) => (
          <li key={link.seq}>
            {cut > 0 && index === 1 && <p class="muted small">{plural(cut, "run")} between</p>}
            <StepButton model={model} step={link.step} /> <EventButton model={model} seq={link.seq} />
            {link.condition && <Guard model={model} condition={link.condition} />}
          </li>
        ))}
      </ol>
    </Part>
  );
}

const ARC_WORDS: Readonly<Record<IncomingArc["verdict"], string>> = {
  taken: "taken",
  not_taken: "not taken: its guard was false",
  not_asked: "not asked: an earlier arc was taken",
  failed: "its guard failed",
  not_reached: "its step has not ended",
};

function Arc({ model, arc }: { model: ExecutionModel; arc: IncomingArc }) {
  const through = arc.through ?? [];
  return (
    <div class={`why-arc ${arc.verdict}`}>
      <p class="row wrap">
        <StepButton model={model} step={arc.source} />
        <span class="muted" aria-label="to">→</span>
        <StepButton model={model} step={arc.target} />
        <SourceLine model={model} line={arc.line} />
        <span class="muted">{ARC_WORDS[arc.verdict]}{(arc.taken ?? 0) > 1 ? ` ${arc.taken}×` : ""}</span>
      </p>
      {arc.condition ? <Guard model={model} condition={arc.condition} /> : arc.text && <p class="why-guard"><code>{bare(arc.text)}</code></p>}
      {through.length > 1 && <p class="muted small">then {through.slice(1).join(" → ")}</p>}
    </div>
  );
}

/** A guard, whether it held, and what it read. */
export function Guard({ model, condition }: { model: ExecutionModel; condition: Condition }) {
  return <ConditionView condition={condition} line={<SourceLine model={model} line={condition.line} />} />;
}

function Join({ join, model }: { join: WaitingJoin; model: ExecutionModel }) {
  const needed = join.needed == null ? "until nothing else can come" : `${join.arrived ?? 0} of ${join.needed} tokens are there`;
  return (
    <Part title={`Its join (${join.mode}) waits: ${needed}`}>
      {(join.waits_for ?? []).map((from) => (
        <p key={from.step}>
          something can still come from <StepButton model={model} step={from.step} />
          <span class="muted"> {[from.tokens && plural(from.tokens, "token"), from.runs && plural(from.runs, "run"), from.failed && `${from.failed} failed: a retry opens them`].filter(Boolean).join(", ")}</span>
        </p>
      ))}
    </Part>
  );
}

function LastRun({ model, run, count }: { model: ExecutionModel; run: RunExplanation; count: number }) {
  const gates = (run.gates ?? []).filter((gate) => gate.rules?.length);
  const tasks = (run.tasks ?? []).filter((task) => task.rules?.length);
  const arcs = run.routing?.arcs ?? [];
  return (
    <>
      {gates.map((gate) => (
        <Part key={gate.token} title={`Admission: ${gate.verdict}`}>
          {gate.rules!.map((rule, index) => <Guard key={index} model={model} condition={rule} />)}
        </Part>
      ))}
      {tasks.length > 0 && (
        <Part title={count > 1 ? `Rules that decided in the last of ${count} runs` : "Rules that decided"}>
          {tasks.flatMap((task) =>
            task.rules!.map((rule, index) => (
              <p key={`${task.task} ${index}`} class="row wrap">
                <b>{task.task}</b> <span>{rule.do}{rule.times > 1 ? ` ${rule.times}×` : ""}</span>
                {rule.text && <code>{bare(rule.text)}</code>} {rule.line != null && <SourceLine model={model} line={rule.line} />}
              </p>
            )),
          )}
        </Part>
      )}
      {run.routing && (
        <Part title={run.routing.handled === false ? "Nobody handled its failure" : arcs.length ? "Where it led" : "It leads nowhere"}>
          {arcs.map((arc, index) => (
            <div key={index} class={`why-arc ${arc.selected ? "taken" : ""}`}>
              <p class="row wrap"><span class="muted" aria-label="to">→</span><StepButton model={model} step={arc.step} /><span class="muted">{arc.selected ? "taken" : "not taken"}</span></p>
              <Guard model={model} condition={arc.condition} />
            </div>
          ))}
        </Part>
      )}
    </>
  );
}

export function StepButton({ model, step }: { model: ExecutionModel; step: string }) {
  return <button type="button" class="link" onClick={() => model.select(step)}>{step}</button>;
}

export function EventButton({ model, seq }: { model: ExecutionModel; seq: number }) {
  return <Button small kind="bare" class="event-number" title={`Look at event ${seq}`} onClick={() => model.moveTo(seq)}>#{seq}</Button>;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
