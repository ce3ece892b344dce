/** A table of any length: rows of one height, of which only those in view are drawn. `j` and `k` walk along it. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../shell/shortcuts";
import { NARROW, useMedia } from "./media";
import { rowsInView, scrollFor } from "./virtual-list";

export interface Column<Row> {
  title: string;
  /** A CSS grid track: `140px`, `minmax(120px, 1fr)`. */
  width: string;
  right?: boolean;
  cell: (row: Row) => ComponentChildren;
  /** Left out where the table is narrower than this. */
  from?: number;
}

interface Props<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  /** What a row is on a phone, in two lines. */
  compact: (row: Row) => ComponentChildren;
  open?: (row: Row) => void;
  /** Called when the end comes into view. */
  more?: () => void;
  foot?: ComponentChildren;
  selection?: { chosen: ReadonlySet<string>; choose: (keys: ReadonlySet<string>) => void };
  /** How high a row is on a phone. */
  compactHeight?: number;
  /** As high as its rows, not as the room that is left. */
  short?: boolean;
}

const ROW = 40;
const COMPACT_ROW = 64;

export function GridTable<Row>(props: Props<Row>) {
  const { rows, keyOf, selection, short } = props;
  const body = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600, width: 1200 });
  const [active, setActive] = useState<string | null>(null);
  const narrow = useMedia(NARROW);
  const rowHeight = narrow ? (props.compactHeight ?? COMPACT_ROW) : ROW;
  const columns = props.columns.filter((column) => view.width >= (column.from ?? 0));
  const range = short ? { first: 0, end: rows.length } : rowsInView(rows.length, rowHeight, view.top, view.height);

  useLayoutEffect(() => {
    const element = body.current!;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight, width: element.clientWidth });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (range.end >= rows.length - 20) props.more?.();
  }, [range.end, rows.length]);

  const walk = (distance: number) => {
    if (!rows.length) return;
    const index = rows.findIndex((row) => keyOf(row) === active);
    const next = Math.max(0, Math.min(rows.length - 1, index < 0 ? 0 : index + distance));
    setActive(keyOf(rows[next]!));
    const element = body.current!;
    if (!short) element.scrollTop = scrollFor(next, rowHeight, element.scrollTop, element.clientHeight);
  };
  const activeRow = () => rows.find((row) => keyOf(row) === active);
  const toggle = (key: string) => {
    const chosen = new Set(selection!.chosen);
    if (!chosen.delete(key)) chosen.add(key);
    selection!.choose(chosen);
  };
  useShortcuts({
    j: () => walk(1),
    k: () => walk(-1),
    o: () => { const row = activeRow(); if (row) props.open?.(row); },
    x: () => { if (selection && active && activeRow()) toggle(active); },
  });

  const tracks = narrow ? `${selection ? "24px " : ""}minmax(0, 1fr)` : `${selection ? "24px " : ""}${columns.map((column) => column.width).join(" ")}`;
  const drawn = [];
  for (let index = range.first; index < range.end; index++) {
    const row = rows[index]!;
    const key = keyOf(row);
    const chosen = selection?.chosen.has(key) ?? false;
    drawn.push(
      <div
        role="row"
        key={key}
        aria-rowindex={index + 2}
        class={`grid-row ${chosen ? "chosen" : ""} ${key === active ? "active" : ""}`}
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px`, gridTemplateColumns: tracks }}
      >
        {selection && (
          <span role="cell">
            <label class="grid-check">
              <input type="checkbox" checked={chosen} aria-label={`Choose ${key}`} onChange={() => toggle(key)} />
            </label>
          </span>
        )}
        {narrow ? (
          <div role="cell" class="compact">{props.compact(row)}</div>
        ) : (
          columns.map((column) => <div role="cell" key={column.title} class={column.right ? "right" : undefined}>{column.cell(row)}</div>)
        )}
      </div>,
    );
  }
  const all = selection && rows.length > 0 && rows.every((row) => selection.chosen.has(keyOf(row)));
  return (
    <div class={`grid-table ${short ? "" : "grow"}`} role="table" aria-label={props.label} aria-rowcount={rows.length + 1}>
      <div role="rowgroup">
        <div class="grid-row grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: tracks }}>
          {selection && (
            <span role="columnheader">
              <label class="grid-check">
                <input type="checkbox" checked={all} aria-label="Choose all rows that are loaded" onChange={() => selection.choose(new Set(all ? [] : rows.map(keyOf)))} />
              </label>
            </span>
          )}
          {narrow ? <span role="columnheader">{props.label}</span> : columns.map((column) => <span role="columnheader" key={column.title} class={column.right ? "right" : undefined}>{column.title}</span>)}
        </div>
      </div>
      <div
        class={`grid-body ${short ? "short" : ""}`}
        ref={body}
        role="rowgroup"
        tabIndex={short ? undefined : 0}
        onScroll={(event) => setView({ ...view, top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
      >
        <div class="grid-space" role="presentation" style={{ height: `${rows.length * rowHeight}px` }}>{drawn}</div>
      </div>
      {props.foot && <div class="grid-foot">{props.foot}</div>}
    </div>
  );
}
