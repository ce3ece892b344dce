import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { asProblem, get } from "../../api/client";
import type { LogPage, ProblemDocument } from "../../api/types";
import { instant, partsOf } from "../../format/time";
import { rowsInView } from "../../list/virtual-list";
import { zone } from "../../preferences";
import { Button, Problem } from "../../view/parts";
import type { ExecutionModel } from "./model";

interface LogLine {
  ts: string;
  step: string;
  task: string;
  iteration?: number;
  attempt?: number;
  text: string;
}

const ROW = 20;
const END = 24;

/** What tasks wrote up to the event. At its end it follows; who scrolls up reads in peace. */
export function Logs({ model, step }: { model: ExecutionModel; step: string | null }) {
  const [lines, setLines] = useState<readonly LogLine[]>();
  const [problem, setProblem] = useState<ProblemDocument>();
  const version = model.version.value;
  const after = useRef("");
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        let more = true;
        while (more) {
          const page: LogPage = await get<LogPage>(model.route("logs"), { query: { step, after: after.current }, signal: controller.signal });
          after.current = page.last;
          more = page.next_cursor !== null;
          setLines((before) => [...(before ?? []), ...(page.lines as unknown as LogLine[])]);
        }
        setProblem(undefined);
      } catch (error) {
        if (!controller.signal.aborted) setProblem(asProblem(error));
      }
    }, lines ? 250 : 0);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [step, version]);
  if (problem) return <Problem problem={problem} />;
  if (!lines) return <p class="loading" role="status">Loading…</p>;
  const until = model.isLive.value ? Infinity : model.history.timeAt(model.at.value) / 1_000;
  const shown = until === Infinity ? lines : lines.filter((line) => instant(line.ts) <= until);
  if (!shown.length)
    return <p class="muted">{step ?? "It"} has written nothing{until === Infinity ? "" : " up to this event"}. Whatever a task prints is kept here.</p>;
  return <LogList lines={shown} withStep={step === null} />;
}

function LogList({ lines, withStep }: { lines: readonly LogLine[]; withStep: boolean }) {
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 300 });
  const [following, setFollowing] = useState(true);
  const [wrapped, setWrapped] = useState<number | null>(null);
  useLayoutEffect(() => {
    const host = element.current!;
    if (following) host.scrollTop = host.scrollHeight;
    setView({ top: host.scrollTop, height: host.clientHeight });
  }, [lines.length]);
  const scrolled = (host: HTMLDivElement) => {
    setFollowing(host.scrollTop + host.clientHeight >= host.scrollHeight - END);
    setView({ top: host.scrollTop, height: host.clientHeight });
  };
  const range = rowsInView(lines.length, ROW, view.top, view.height);
  const chosen = wrapped === null ? undefined : lines[wrapped];
  return (
    <div class="logs">
      <div class="logs-lines" ref={element} tabIndex={0} role="log" aria-live="off" aria-label="Log" onScroll={(event) => scrolled(event.currentTarget)}>
        <div style={{ height: `${lines.length * ROW}px`, position: "relative" }}>
          {lines.slice(range.first, range.end).map((line, offset) => {
            const index = range.first + offset;
            return (
              <div key={index} class="log-line" style={{ top: `${index * ROW}px` }} onClick={() => setWrapped(index === wrapped ? null : index)}>
                <span class="muted">{partsOf(instant(line.ts), zone.value).clock}</span>
                <span class="log-source">{[withStep && line.step, line.task, line.iteration != null && `[${line.iteration}]`].filter(Boolean).join(" ")}</span>
                <span class="log-text">{line.text}</span>
              </div>
            );
          })}
        </div>
      </div>
      {chosen && <pre class="log-whole" tabIndex={0}>{chosen.text}</pre>}
      {!following && (
        <Button small class="logs-follow" onClick={() => { element.current!.scrollTop = element.current!.scrollHeight; }}>Follow the end</Button>
      )}
    </div>
  );
}
