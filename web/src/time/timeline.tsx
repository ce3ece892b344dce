import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration } from "../format/time";
import { rowsInView } from "../list/virtual-list";
import { readPalette } from "../net/palette";
import { statusWord } from "../net/step-state";
import { theme } from "../preferences";
import { RestingQuery } from "../router";
import { Icon } from "../view/icon";
import { StatusShape, toneOf } from "../view/status";
import { AXIS, BarPainter, pixelOf, ROW, worst, type TimeScene, type TimeWindow } from "./bar-painter";
import type { TimeRow } from "./bars";
import type { FoldedScale } from "./scale";

interface TimelineProps {
  readonly rows: readonly TimeRow[];
  readonly scale: FoldedScale;
  /** When the execution is looked at, in microseconds. */
  readonly now: number;
  readonly selected: string | null;
  readonly onSelect: (row: TimeRow) => void;
  readonly onToggle: (row: TimeRow) => void;
  readonly onMoment: (time: number) => void;
}

const LABELS = 168;
const NARROW_LABELS = 112;

/** Steps one below the other, their runs along the time. What is in view is on one canvas, behind the rows. */
export function Timeline({ rows, scale, now, selected, onSelect, onToggle, onMoment }: TimelineProps) {
  const element = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<BarPainter | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0, top: 0 });
  const range = useMemo(() => new RestingQuery("range"), []);
  useEffect(() => range.follow(), []);
  const zoom = rangeOfText(range.value.value);
  const setZoom = (part: TimeRange | null) => range.set(part && `${Math.round(part.from)},${Math.round(part.to)}`);
  const labels = size.width < 480 ? NARROW_LABELS : LABELS;
  const shownWidth = Math.max(size.width - labels, 50);
  // Without a zoom of one's own there is room at the right, for what stands beside the last bar.
  const window: TimeWindow = zoom
    ? { ...zoom, width: shownWidth }
    : { from: 0, to: scale.length * 1.02 + (scale.length / shownWidth) * Math.min(110, shownWidth * 0.3), width: shownWidth };
  const visible = rowsInView(rows.length, ROW, size.top, size.height - AXIS);
  const scene: TimeScene = { rows, first: visible.first, end: visible.end, top: size.top, scale, window, now, selected };

  useLayoutEffect(() => {
    const host = element.current!;
    const measure = () => setSize((before) => ({ ...before, width: host.clientWidth, height: host.clientHeight }));
    const observer = new ResizeObserver(measure);
    observer.observe(host);
    measure();
    return () => observer.disconnect();
  }, []);
  const look = theme.value;
  useLayoutEffect(() => {
    const surface = canvas.current!;
    if (!size.width || !size.height) return;
    const palette = painter.current && painter.current.palette;
    painter.current ??= new BarPainter(surface.getContext("2d")!, palette ?? readPalette(element.current!));
    const width = Math.round(shownWidth * devicePixelRatio);
    const height = Math.round(size.height * devicePixelRatio);
    if (surface.width !== width || surface.height !== height) {
      surface.width = width;
      surface.height = height;
    }
    painter.current.paint(scene, size.height, devicePixelRatio);
  });
  useEffect(() => {
    const restyle = () => {
      if (!painter.current) return;
      painter.current.palette = readPalette(element.current!);
      painter.current.paint(scene, size.height, devicePixelRatio);
    };
    restyle();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", restyle);
    return () => dark.removeEventListener("change", restyle);
  }, [look]);
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const x = event.clientX - canvas.current!.getBoundingClientRect().left;
    if (event.shiftKey && !event.ctrlKey) setZoom(shifted(window, event.deltaY || event.deltaX, scale.length));
    else setZoom(zoomedAt(window, Math.exp(event.deltaY * 0.004), x, scale.length));
  };
  const handler = useRef(wheel);
  handler.current = wheel;
  useEffect(() => {
    const host = element.current!;
    const listen = (event: WheelEvent) => handler.current(event);
    host.addEventListener("wheel", listen, { passive: false });
    return () => host.removeEventListener("wheel", listen);
  }, []);
  const zoomBy = (factor: number) => setZoom(zoomedAt(window, factor, pixelOf(scene, now), scale.length));
  const momentAt = (event: MouseEvent) => {
    const x = event.clientX - canvas.current!.getBoundingClientRect().left;
    if (x >= 0) onMoment(scale.time(window.from + (x / shownWidth) * (window.to - window.from)));
  };
  const drawn = [];
  for (let index = visible.first; index < visible.end; index++)
    drawn.push(<Row key={rows[index]!.key} row={rows[index]!} index={index} selected={selected} now={now} onSelect={onSelect} onToggle={onToggle} />);
  return (
    <div class={labels === LABELS ? "timeline" : "timeline narrow"} ref={element}>
      <canvas class="timeline-bars" ref={canvas} aria-hidden="true" style={{ left: `${labels}px`, width: `${shownWidth}px` }} />
      <div class="timeline-axis" style={{ height: `${AXIS}px` }} onClick={momentAt}>
        <div class="timeline-tools" role="group" aria-label="Zoom in time">
          <button type="button" aria-label="Zoom in" title="Zoom in (Ctrl and wheel)" onClick={() => zoomBy(0.6)}>+</button>
          <button type="button" aria-label="Zoom out" title="Zoom out" onClick={() => zoomBy(1.6)}>−</button>
          <button type="button" aria-label="Show all" title="Show all" disabled={!zoom} onClick={() => setZoom(null)}>⤢</button>
        </div>
      </div>
      <div
        class="timeline-rows"
        tabIndex={rows.length ? undefined : 0}
        onScroll={(event) => setSize({ ...size, top: event.currentTarget.scrollTop })}
      >
        <ul style={{ height: `${rows.length * ROW}px` }} aria-label="Steps in time">{drawn}</ul>
      </div>
    </div>
  );
}

interface RowProps {
  readonly row: TimeRow;
  readonly index: number;
  readonly selected: string | null;
  readonly now: number;
  readonly onSelect: (row: TimeRow) => void;
  readonly onToggle: (row: TimeRow) => void;
}

function Row({ row, index, selected, now, onSelect, onToggle }: RowProps) {
  const text = useMemo(() => describe(row, now), [row, now]);
  const expandable = row.kind === "child" || ((row.kind === "step" || row.kind === "run") && row.expandable);
  const open = row.kind !== "inner" && row.open;
  const chosen = row.step === selected && row.kind === "step";
  return (
    <li class={chosen ? "timeline-row chosen" : "timeline-row"} style={{ top: `${index * ROW}px`, height: `${ROW}px` }}>
      {expandable ? (
        <button type="button" class="timeline-open" aria-expanded={open} aria-label={`${open ? "Close" : "Open"} ${text.name}`} onClick={() => onToggle(row)}>
          <Icon name="chevron" size={12} />
        </button>
      ) : (
        <span class="timeline-open" />
      )}
      <button type="button" class="timeline-name" style={{ paddingLeft: `${text.depth * 12}px` }} aria-label={`${text.name}, ${text.says}`} aria-pressed={chosen} onClick={() => onSelect(row)}>
        <span class={`status ${toneOf(text.status)}`}><StatusShape status={text.status} size={12} /></span>
        <span class="cut">{text.name}</span>
      </button>
    </li>
  );
}

function describe(row: TimeRow, now: number): { name: string; status: string; says: string; depth: number } {
  switch (row.kind) {
    case "child": {
      const { child } = row;
      const length = duration(((child.end ?? now) - child.begin) / 1_000);
      return { name: child.path.split("/").pop()!, status: child.status, says: `child ${child.path}, ${statusWord(child.status)}, ${length}`, depth: row.depth };
    }
    case "run": {
      const { bar, end, status } = row.run;
      const length = duration(((end ?? now) - bar.begin) / 1_000);
      return { name: `#${bar.seq}`, status, says: `run, ${statusWord(status)}, ${length}`, depth: 1 };
    }
    case "step":
    case "inner": {
      const status = worst(row.runs);
      const first = row.runs[0]!;
      const length = duration(((first.end ?? now) - first.bar.begin) / 1_000);
      const says = row.runs.length > 1 ? `${row.runs.length} runs` : length;
      return { name: row.step, status, says: `${statusWord(status)}, ${says}`, depth: row.kind === "inner" ? row.depth : 0 };
    }
  }
}

interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** A part of the folded time as the URL has it: two numbers of microseconds; null for anything else. */
export function rangeOfText(text: string | null): TimeRange | null {
  const [from, to] = /^-?\d+,\d+$/.test(text ?? "") ? text!.split(",").map(Number) : [];
  return from !== undefined && to !== undefined && from < to ? { from, to } : null;
}

/** Larger or smaller around a pixel, within the whole; null for the whole. */
export function zoomedAt(window: TimeWindow, factor: number, x: number, length: number): TimeRange | null {
  const middle = window.from + (x / window.width) * (window.to - window.from);
  const span = Math.max((window.to - window.from) * factor, length / 100_000, 10);
  if (span >= length * 1.2) return null;
  const from = middle - ((middle - window.from) / (window.to - window.from)) * span;
  return { from, to: from + span };
}

function shifted(window: TimeWindow, pixels: number, length: number): TimeRange {
  const span = window.to - window.from;
  const from = Math.max(-span * 0.1, Math.min(length - span * 0.5, window.from + (pixels / window.width) * span));
  return { from, to: from + span };
}
