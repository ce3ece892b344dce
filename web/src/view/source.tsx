/** Texts of playbooks: with numbers of lines, or what differs between two. */
import { useEffect, useRef } from "preact/hooks";
import type { DifferenceLine } from "../format/difference";
import { plural } from "../format/number";

/** `line` is marked and scrolled to. */
export function SourceText({ text, line }: { text: string; line?: number | null }) {
  const marked = useRef<HTMLSpanElement>(null);
  useEffect(() => marked.current?.scrollIntoView({ block: "center" }), [line]);
  return (
    <pre class="source" tabIndex={0} aria-label="Source">
      {text.replace(/\n$/, "").split("\n").map((content, index) => (
        <span key={index} data-line={index + 1} class={`line ${index + 1 === line ? "chosen" : ""}`} ref={index + 1 === line ? marked : undefined}>{content}{"\n"}</span>
      ))}
    </pre>
  );
}

const CLASSES = { " ": "", "+": "added", "-": "removed", "…": "gap" };

export function DifferenceText({ lines }: { lines: readonly DifferenceLine[] }) {
  const added = lines.filter((line) => line.sign === "+").length;
  const removed = lines.filter((line) => line.sign === "-").length;
  return (
    <>
      <p class="small muted difference-note">{added || removed ? `${plural(added, "line")} added, ${plural(removed, "line")} removed` : "The texts are the same."}</p>
      <pre class="source" tabIndex={0} aria-label="Differences">
        {lines.map((line, index) => (
          <span key={index} data-line={line.after ?? line.before ?? ""} class={`line ${CLASSES[line.sign]}`}><span class="sign">{line.sign === "…" ? "" : line.sign}</span>{line.text}{"\n"}</span>
        ))}
      </pre>
    </>
  );
}
