import type { ComponentChildren } from "preact";
import type { Condition, PathRead } from "../api/types";
import { oneLine } from "../format/json";
import { bare } from "./prose";

/** A guard, whether it held, and what it read; `line` says where it stands. */
export function ConditionView({ condition, line }: { condition: Condition; line: ComponentChildren }) {
  const verdict = condition.error ? "failed" : condition.holds === true ? "held" : condition.holds === false ? "false" : "not asked";
  const mark = verdict === "held" ? "✓" : verdict === "false" ? "✗" : verdict === "failed" ? "!" : "–";
  return (
    <div class={`why-guard ${verdict.replace(" ", "-")}`}>
      <p>
        <span class="why-mark" aria-hidden="true">{mark}</span>
        <span class="hidden-text">{verdict}: </span>
        <code>{condition.text ? bare(condition.text) : "always"}</code> {line}
      </p>
      {condition.error && <p class="failed-text small">{condition.error}</p>}
      {!!condition.reads?.length && <dl class="why-reads">{condition.reads.map((read) => <Read key={read.path} read={read} />)}</dl>}
    </div>
  );
}

function Read({ read }: { read: PathRead }) {
  return (
    <>
      <dt><code>{read.path}</code></dt>
      <dd>{read.missing ? <span class="muted">is not there</span> : <code>{oneLine(read.value, 160)}</code>}</dd>
    </>
  );
}
