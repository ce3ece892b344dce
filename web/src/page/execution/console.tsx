import { useState } from "preact/hooks";
import { asProblem, post } from "../../api/client";
import type { EvaluatedExpression, ProblemDocument } from "../../api/types";
import { command } from "../../format/command";
import { oneLine } from "../../format/json";
import { Button, CommandLine, Problem } from "../../view/parts";
import { Value } from "../../view/value";
import type { ExecutionModel } from "./model";

interface Asked {
  readonly text: string;
  readonly at: number;
  readonly step: string | null;
  readonly answer?: EvaluatedExpression;
  readonly problem?: ProblemDocument;
}

/** An expression, evaluated at the event, as the chosen step sees it. */
export function Console({ model }: { model: ExecutionModel }) {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState<readonly Asked[]>([]);
  const at = model.at.value;
  const step = model.step.value;
  const ask = async (event: Event) => {
    event.preventDefault();
    if (!text.trim()) return;
    const question = { text, at, step };
    let result: Asked;
    try {
      const answer = await post<EvaluatedExpression>(model.route("evaluate"), { body: { expr: text, at, ...(step ? { step } : {}) } });
      result = { ...question, answer };
    } catch (error) {
      result = { ...question, problem: asProblem(error) };
    }
    setAsked((before) => [result, ...before].slice(0, 20));
  };
  return (
    <div class="console">
      <form class="console-form" onSubmit={(event) => void ask(event)}>
        <input class="input mono" aria-label="Expression" placeholder="ctx.total > 10" spellcheck={false} autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <Button kind="primary" type="submit">Evaluate</Button>
      </form>
      <p class="muted small">At event {at}{step ? <>, as <b>{step}</b> sees it</> : ", outside of a step"}.</p>
      <div class="console-answers" role="log" aria-live="polite" tabIndex={0} aria-label="Answers">
        {!asked.length && <p class="muted small">Anything that a guard can read: <code>ctx</code>, <code>workload</code>, of a step also <code>args</code>, results of its tasks and <code>iter</code>.</p>}
        {asked.map((item, index) => <Answer key={asked.length - index} item={item} id={model.id} />)}
      </div>
    </div>
  );
}

function Answer({ item, id }: { item: Asked; id: string }) {
  const line = command("executions", "eval", id, item.text, "--at", item.at, ...(item.step ? ["--step", item.step] : []));
  return (
    <div class="console-answer stack tight">
      <p><code>{item.text}</code> <span class="muted small">#{item.at}{item.step && ` · ${item.step}`}</span></p>
      {item.problem && <Problem problem={item.problem} />}
      {item.answer && <Value value={item.answer.value} open={2} />}
      {item.answer?.reads.map((read) => (
        <p key={read.path} class="small"><code>{read.path}</code> <span class="muted">{read.missing ? "is not there" : `= ${oneLine(read.value, 120)}`}</span></p>
      ))}
      <CommandLine text={line} />
    </div>
  );
}
