import { useEffect, useMemo, useState } from "preact/hooks";
import { segments } from "../../api/client";
import type { RunBar } from "../../api/types";
import { href, navigate, setQuery } from "../../router";
import { timeRows, type TimeRow } from "../../time/bars";
import { FoldedScale, idleUntil, roomFor } from "../../time/scale";
import { Timeline } from "../../time/timeline";
import { readTimeline, type ExecutionModel } from "./model";

/** Now in microseconds, each second, while an execution is followed: what is under way lasts until then. Else 0. */
function useLiveClock(follows: boolean): number {
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (!follows) return setNow(0);
    const tick = () => setNow(Date.now() * 1_000);
    tick();
    const timer = setInterval(tick, 1_000);
    return () => clearInterval(timer);
  }, [follows]);
  return now;
}

/** The runs in time, up to the event. Loops are one bar; children open in place. */
export function TimePanel({ model }: { model: ExecutionModel }) {
  const timeline = model.timeline.value;
  const at = model.at.value;
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [children, setChildren] = useState<ReadonlyMap<string, readonly RunBar[]>>(new Map());
  const last = model.history.timeAt(model.last.value);
  const clock = useLiveClock(model.isLive.value && !model.isOver.value && !model.isExported);
  const now = model.isLive.value ? Math.max(model.history.timeAt(at), clock) : model.history.timeAt(at);
  const rows = useMemo(
    () => timeRows(timeline?.bars ?? [], at, model.moment.value, open, children, model.history.endedIterations(at)),
    [timeline, at, model.moment.value, open, children],
  );
  const until = Math.max(now, last);
  const scale = useMemo(() => {
    const begin = timeline?.begin ?? last;
    const idle = timeline?.idle ?? [];
    if (until === last) return new FoldedScale(begin, Math.max(timeline?.end ?? last, last), idle);
    const isWorking = timeline?.bars.some((bar) => bar.status === "running");
    return isWorking ? new FoldedScale(begin, roomFor(begin, until), idle) : new FoldedScale(begin, until, idleUntil(until, last, idle));
  }, [timeline, last, until]);
  const wanted = [...open].filter((key) => key.startsWith("child ")).map((key) => key.slice(6)).join(" ");
  useEffect(() => {
    const controller = new AbortController();
    for (const id of wanted.split(" ").filter(Boolean))
      void readTimeline(segments("executions", id, "runs"), controller.signal).then(
        (read) => setChildren((before) => new Map(before).set(id, read.bars)),
        () => {},
      );
    return () => controller.abort();
  }, [wanted, timeline]);
  if (!timeline) return <p class="loading" role="status">Loading…</p>;
  const toggle = (row: TimeRow) => {
    const next = new Set(open);
    if (!next.delete(row.key)) next.add(row.key);
    setOpen(next);
  };
  const select = (row: TimeRow) => {
    // Pages of children are not in an exported file.
    if (model.isExported && (row.kind === "child" || row.kind === "inner")) return;
    if (row.kind === "child") navigate(href(`/executions/${row.child.execution_id}`));
    else if (row.kind === "inner") navigate(href(`/executions/${row.execution}`, { step: row.step }));
    else if (row.kind === "run") setQuery({ step: row.step, run: row.run.bar.run, tab: "attempts" }, "push");
    else model.select(row.step);
  };
  return (
    <>
      {timeline.more && <p class="notice small">Only the first {timeline.bars.length} runs are drawn.</p>}
      <Timeline rows={rows} scale={scale} now={now} selected={model.step.value} onSelect={select} onToggle={toggle} onMoment={(time) => model.moveTo(model.history.seqAtTime(time))} />
    </>
  );
}
