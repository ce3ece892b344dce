import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../../api/client";
import type { EventPage } from "../../api/types";
import { grouped, plural } from "../../format/number";
import { duration } from "../../format/time";
import { rowsInView, scrollFor } from "../../list/virtual-list";
import { Problem } from "../../view/parts";
import { Value } from "../../view/value";
import { useAnswer } from "./answer";
import type { ExecutionModel } from "./model";

const ROW = 26;

/** All events, with a search. One that is pressed is the one that every panel shows. */
export function Events({ model }: { model: ExecutionModel }) {
  const [search, setSearch] = useState("");
  const version = model.version.value;
  const at = model.at.value;
  const found = useMemo(() => matching(model, search), [search, version]);
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 300 });
  // Who looks at the end follows it; who scrolled up stays.
  const atEnd = useRef(true);
  const moved = useRef(at);
  useLayoutEffect(() => {
    const host = element.current!;
    const index = found ? found.indexOf(at) : at - 1;
    if (moved.current !== at || atEnd.current) {
      if (!model.isLive.value || atEnd.current) host.scrollTop = scrollFor(index, ROW, host.scrollTop, host.clientHeight);
    }
    moved.current = at;
    setView({ top: host.scrollTop, height: host.clientHeight });
  }, [at, found, version]);
  useEffect(() => {
    const host = element.current!;
    const observer = new ResizeObserver(() => setView({ top: host.scrollTop, height: host.clientHeight }));
    observer.observe(host);
    return () => observer.disconnect();
  }, []);
  const count = found ? found.length : model.last.value;
  const range = rowsInView(count, ROW, view.top, view.height);
  const rows = [];
  for (let index = range.first; index < range.end; index++) {
    const seq = found ? found[index]! : index + 1;
    rows.push(<EventRow key={seq} model={model} seq={seq} top={index * ROW} chosen={seq === at} />);
  }
  return (
    <div class="events">
      <div class="events-search">
        <input class="input" type="search" placeholder="Name, step or run" aria-label="Search events" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <span class="muted small nowrap" role="status">{search ? `${grouped(count)} of ${plural(model.last.value, "event")}` : plural(count, "event")}</span>
      </div>
      <div class="events-body">
        <div
          class="events-list"
          ref={element}
          role="listbox"
          aria-label="Events"
          tabIndex={0}
          onScroll={(event) => {
            const host = event.currentTarget;
            atEnd.current = host.scrollTop + host.clientHeight >= host.scrollHeight - ROW;
            setView({ top: host.scrollTop, height: host.clientHeight });
          }}
          onKeyDown={(event) => {
            const next = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
            if (!next) return;
            event.preventDefault();
            const seq = found ? found[found.indexOf(at) + next] : at + next;
            if (seq) model.moveTo(seq);
          }}
        >
          <div role="presentation" style={{ height: `${count * ROW}px`, position: "relative" }}>{rows}</div>
        </div>
        <EventBody model={model} seq={at} />
      </div>
    </div>
  );
}

function matching(model: ExecutionModel, search: string): number[] | null {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const { history } = model;
  const found: number[] = [];
  for (let seq = 1; seq <= history.last; seq++) {
    const text = `${seq} ${history.nameAt(seq)} ${history.stepAt(seq) ?? ""} ${history.runAt(seq) ?? ""}${history.errors.has(seq) ? " error" : ""}`.toLowerCase();
    if (words.every((word) => text.includes(word))) found.push(seq);
  }
  return found;
}

function EventRow({ model, seq, top, chosen }: { model: ExecutionModel; seq: number; top: number; chosen: boolean }) {
  const { history } = model;
  const failed = history.errors.has(seq);
  return (
    <div class={`event-row ${chosen ? "chosen" : ""} ${seq > model.at.value ? "later" : ""}`} role="option" aria-selected={chosen} style={{ top: `${top}px` }} onClick={() => model.moveTo(seq)}>
      <span class="numbers muted event-seq">{seq}</span>
      <span class={failed ? "cut failed-text" : "cut"}>{failed && <span aria-label="error">✗ </span>}{history.nameAt(seq)}</span>
      <span class="cut">{history.stepAt(seq)}</span>
      <span class="numbers muted event-time">+{duration((history.timeAt(seq) - history.timeAt(1)) / 1_000)}</span>
    </div>
  );
}

/** The envelope of the event that is looked at. */
function EventBody({ model, seq }: { model: ExecutionModel; seq: number }) {
  const answer = useAnswer(`${model.id} event ${seq}`, (signal) =>
    get<EventPage>(model.route("events"), { query: { after: seq - 1, limit: 1 }, signal }),
  );
  const event = answer.data?.events[0];
  return (
    <div class="event-body" aria-busy={!answer.current} tabIndex={0} role="region" aria-label={`Event ${seq}`}>
      {answer.problem && <Problem problem={answer.problem} />}
      {event && <Value value={event} open={2} />}
    </div>
  );
}
