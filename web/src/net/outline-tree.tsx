import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { NetAnswer } from "../api/types";
import { rowsInView, scrollFor } from "../list/virtual-list";
import { StatusShape, toneOf } from "../view/status";
import { outlineRows } from "./outline";
import { stateSentence, type NetState } from "./step-state";

interface OutlineProps {
  readonly net: NetAnswer;
  readonly state?: NetState | null;
  readonly selected?: string | null;
  readonly onSelect?: (step: string) => void;
}

const ROW = 28;

/** The net as a tree, with the same actions as the picture. Only rows in view are elements. */
export function OutlineTree({ net, state, selected = null, onSelect }: OutlineProps) {
  const rows = useMemo(() => outlineRows(net), [net]);
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const [active, setActive] = useState(() => Math.max(0, rows.findIndex((row) => row.step === selected)));
  useLayoutEffect(() => {
    const host = element.current!;
    const measure = () => setView({ top: host.scrollTop, height: host.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(host);
    measure();
    return () => observer.disconnect();
  }, []);
  const range = rowsInView(rows.length, ROW, view.top, view.height);
  const goTo = (index: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    setActive(next);
    const host = element.current!;
    host.scrollTop = scrollFor(next, ROW, host.scrollTop, host.clientHeight);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") goTo(active + 1);
    else if (event.key === "ArrowUp") goTo(active - 1);
    else if (event.key === "Home") goTo(0);
    else if (event.key === "End") goTo(rows.length - 1);
    else if (event.key === "Enter" || event.key === " ") onSelect?.(rows[active]!.step);
    else return;
    event.preventDefault();
  };
  const drawn = [];
  for (let index = range.first; index < range.end; index++) {
    const row = rows[index]!;
    const stands = state?.steps.get(row.step);
    const says = state ? stateSentence(stands) : "";
    drawn.push(
      <div
        key={index}
        id={`outline-${index}`}
        role="treeitem"
        aria-level={row.depth}
        aria-setsize={rows.length}
        aria-posinset={index + 1}
        aria-selected={row.step === selected}
        class={`outline-row ${index === active ? "active" : ""} ${row.again ? "again" : ""}`}
        style={{ top: `${index * ROW}px`, paddingLeft: `${Math.min(row.depth, 12) * 16}px` }}
        onClick={() => {
          setActive(index);
          onSelect?.(row.step);
        }}
      >
        {state && <span class={`status ${toneOf(stands?.status ?? "idle")}`}><StatusShape status={stands?.status ?? "idle"} size={14} /></span>}
        <span class="nowrap">{row.again ? `↑ ${row.step}` : row.step}</span>
        {row.guard && <code class="muted cut">{row.guard}</code>}
        {says && <span class="muted small push nowrap">{says}</span>}
      </div>,
    );
  }
  return (
    <div
      class="outline"
      ref={element}
      role="tree"
      aria-label="Steps"
      tabIndex={0}
      aria-activedescendant={active >= range.first && active < range.end ? `outline-${active}` : undefined}
      onKeyDown={key}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div role="presentation" style={{ height: `${rows.length * ROW}px`, position: "relative" }}>{drawn}</div>
    </div>
  );
}
