import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem, get, post } from "../api/client";
import { useResource } from "../api/resource";
import type { OperationAnswer, ProblemDocument, WaitItem, WaitList } from "../api/types";
import { command } from "../format/command";
import type { Mapping } from "../format/json";
import { plural } from "../format/number";
import { fieldKind, initial, misfits, type Schema } from "../format/schema";
import { instant } from "../format/time";
import { href, place, queryValue, setQuery } from "../router";
import { toast } from "../shell/toasts";
import { ConditionView } from "../view/condition";
import { Field, isUnfinished, SchemaFields } from "../view/form";
import { Icon } from "../view/icon";
import { Button, CommandLine, Empty, Labels, Loaded, PageHead, Problem, Segments } from "../view/parts";
import { Time, useClock } from "../view/time";
import { executionHref } from "./executions/execution-columns";

const PAGE = 100;
/** What the server gives at once. */
const MOST = 1_000;

export default function Inbox() {
  const [limit, setLimit] = useState(PAGE);
  const mine = queryValue("mine") === "1";
  const waits = useResource((signal) => get<WaitList>("waits", { query: { limit, mine: mine ? 1 : null }, signal }), [mine], ["waits"]);
  useEffect(() => {
    if (limit > PAGE) void waits.reload();
  }, [limit]);
  return (
    <main id="main" class="inbox">
      <PageHead title="Inbox">
        <Segments label="Which waits" options={[["all", "All"], ["mine", "For me"]]} chosen={mine ? "mine" : "all"} choose={(which) => setQuery({ mine: which === "mine" ? 1 : null })} />
      </PageHead>
      <Loaded from={waits}>
        {(data) =>
          data.waits.length ? (
            <>
              <p class="muted" role="status">{plural(data.waits.length, "wait")}{data.next_cursor ? " or more" : ""}, the oldest first</p>
              {data.waits.map((wait) => <WaitCard key={waitKey(wait)} wait={wait} reload={waits.reload} />)}
              {data.next_cursor && limit < MOST && <p class="row inbox-more"><Button onClick={() => setLimit(Math.min(MOST, limit + PAGE))}>Show more</Button></p>}
            </>
          ) : mine ? (
            <Empty title="Nothing waits for you" action={<Button onClick={() => setQuery({ mine: null })}>Show all</Button>}>What others are asked, or your role may not answer, is not shown.</Empty>
          ) : (
            <Empty title="Nothing waits for a person">
              A task of the kind <code>wait</code> asks here: with a title, a description, and a form from its schema. So does a gate that a signal would open.
            </Empty>
          )
        }
      </Loaded>
    </main>
  );
}

/** Task runs and tokens are called alike in all executions. */
export function waitKey(wait: WaitItem): string {
  return `${wait.execution_id}/${wait.wait}`;
}

export function waitTitle(wait: WaitItem): string {
  if (wait.title) return wait.title;
  return wait.kind === "gate" ? `The gate of ${wait.step} waits for ${wait.signal || "a signal"}` : `${wait.step} waits for ${wait.signal}`;
}

/** An answer that is no object is the field `answer` of a form. */
function formOf(schema: Schema | null): { schema: Schema; bare: boolean } {
  if (schema && fieldKind(schema) === "object") return { schema, bare: false };
  return { schema: { type: "object", properties: { answer: schema ?? { title: "Answer", default: true } }, required: ["answer"] }, bare: true };
}

function WaitCard({ wait, reload }: { wait: WaitItem; reload: () => Promise<void> }) {
  const { schema, bare } = formOf(wait.schema as Schema | null);
  const [value, setValue] = useState<Mapping>(() => initial(schema) as Mapping);
  const [checked, setChecked] = useState(false);
  const [signal, setSignal] = useState(wait.signal);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ProblemDocument>();
  const card = useRef<HTMLElement>(null);
  const chosen = place.value.query.get("wait") === waitKey(wait);
  useEffect(() => {
    if (chosen) card.current?.scrollIntoView({ block: "start" });
  }, [chosen]);
  const wrong = misfits(schema, value);
  const answer = bare ? value.answer : value;
  const submit = async (form: HTMLElement) => {
    setChecked(true);
    if (isUnfinished(form)) return;
    if (Object.keys(wrong).length || !signal) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await post<OperationAnswer>(`executions/${wait.execution_id}/signal`, { body: { name: signal, payload: answer, wait: wait.kind === "task" ? wait.wait : "" } });
      toast(<>Answered: {wait.title || signal}</>);
      await reload();
      // A gate that its signal did not open is still there.
      setBusy(false);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const title = waitTitle(wait);
  const line = command("executions", "signal", wait.execution_id, signal || "SIGNAL", JSON.stringify(answer ?? null), ...(wait.kind === "task" ? ["--wait", wait.wait] : []));
  return (
    <article class={`panel wait ${chosen ? "chosen" : ""}`} ref={card} aria-label={title}>
      <header>
        <h2>{title}</h2>
        <Deadline wait={wait} />
      </header>
      <div class="panel-body form">
        {wait.description && <p class="description">{wait.description}</p>}
        <p class="small muted row wrap">
          <a href={executionHref(wait.execution_id)}>{wait.path || "inline playbook"}</a>
          <span>{wait.step}{wait.iteration !== null && `, item ${wait.iteration + 1}`}</span>
          <span class="row"><Icon name="clock" size={14} /><Time at={wait.since} /></span>
          {wait.assignee.length > 0 && <span class="row"><Icon name="person" size={14} />{wait.assignee.join(", ")}</span>}
          <Labels labels={wait.labels} />
        </p>
        {wait.kind === "gate" && <GateRules wait={wait} />}
        {wait.answerable ? (
          <form class="form" noValidate onSubmit={(event) => { event.preventDefault(); void submit(event.currentTarget); }}>
            {wait.kind === "gate" && <SignalChoice wait={wait} value={signal} change={setSignal} missing={checked && !signal} />}
            {bare ? <Field name="Answer" path="answer" schema={schema.properties!.answer!} value={value.answer} change={(next) => setValue({ answer: next })} wrong={checked ? wrong : {}} required /> : <SchemaFields schema={schema} value={value} change={setValue} wrong={checked ? wrong : {}} />}
            {problem && <Problem problem={problem} />}
            <div class="form-actions"><Button kind="primary" type="submit" disabled={busy}>{wait.kind === "gate" ? "Send the signal" : "Send the answer"}</Button><a class="small push" href={executionHref(wait.execution_id)}>Look at the execution</a></div>
            <details class="small"><summary>The same in a terminal</summary><CommandLine text={line} /></details>
          </form>
        ) : (
          <p class="notice">{wait.assignee.length ? `Only ${wait.assignee.join(", ")} or an admin may answer.` : "Your role may look, not answer."} <a href={href("/executions")}>Executions</a></p>
        )}
      </div>
    </article>
  );
}

/** Which guards keep the token, and what they read. */
function GateRules({ wait }: { wait: WaitItem }) {
  return (
    <ul class="plain gate-rules" aria-label="Guards of the gate">
      {wait.rules.map((rule) => <li key={rule.line}><ConditionView condition={rule} line={<span class="muted small nowrap">line {rule.line}</span>} /></li>)}
    </ul>
  );
}

/** The signal that its rules read, one of several, or one whose name they compute. */
function SignalChoice({ wait, value, change, missing }: { wait: WaitItem; value: string; change: (value: string) => void; missing: boolean }) {
  const schema: Schema = wait.signals.length ? { title: "Signal", enum: wait.signals } : { title: "Signal", type: "string", description: "The gate computes its name." };
  if (wait.signals.length === 1) return <p class="small">Sends the signal <code>{value}</code>.</p>;
  return <Field name="Signal" path="signal" schema={schema} value={value} change={(next) => change(String(next ?? ""))} wrong={missing ? { signal: "is needed" } : {}} required />;
}

function Deadline({ wait }: { wait: WaitItem }) {
  const now = useClock();
  if (!wait.until) return null;
  const soon = instant(wait.until) - now < 3_600_000;
  return <span class={`badge push ${soon ? "failed" : "waiting"}`}>gives up <Time at={wait.until} only="relative" /></span>;
}
