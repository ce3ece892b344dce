import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "../../format/number";
import { GridTable } from "../../list/grid-table";
import { href, navigate, place, setQuery } from "../../router";
import { may } from "../../session";
import { Menu } from "../../shell/menu";
import { subscribe } from "../../stream";
import { Button, Empty, LinkButton, PageHead, Problem } from "../../view/parts";
import { zone } from "../../preferences";
import { ACTS, BulkDialog, VERBS, type Act, type Target } from "./bulk";
import { CompactExecution, EXECUTION_COLUMNS, executionHref } from "./execution-columns";
import { filterText, PERIODS, readFilter, STATUSES, type ListFilter } from "./filter";
import { ExecutionList } from "./list-model";
import { Views } from "./views";

export default function Executions() {
  const wanted = filterText(place.value.query);
  const filter = useMemo(() => readFilter(place.value.query), [wanted]);
  const list = useMemo(() => new ExecutionList(filter), [filter]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [bulk, setBulk] = useState<{ act: Act; target: Target } | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    setChosen(new Set());
    list.mayMove = () => !frame.current?.querySelector(".grid-body:hover") && (frame.current?.querySelector(".grid-body")?.scrollTop ?? 0) === 0;
    void list.more();
    const unsubscribe = subscribe(["executions"], (message) => list.receive(message));
    return () => {
      list.end();
      unsubscribe();
    };
  }, [list]);
  const rows = list.rows.value;
  const fresh = list.fresh.value.length;
  return (
    <main id="main" class="fill">
      <PageHead title="Executions">
        {may("operator") && (
          <Menu label="All that match the filter" button="All that match…">
            {(close) => ACTS.map((act) => (
              <button type="button" class="menu-item" key={act} onClick={() => { close(); setBulk({ act, target: { filter } }); }}>{VERBS[act].title} all that match…</button>
            ))}
          </Menu>
        )}
        {may("operator") && <LinkButton kind="primary" icon="play" href={href("/playbooks")}>Run a playbook</LinkButton>}
      </PageHead>
      <Views />
      <Filters filter={filter} />
      {list.problem.value && <Problem problem={list.problem.value} retry={() => void list.more()} />}
      {chosen.size > 0 && <ChosenBar chosen={chosen} ask={(act) => setBulk({ act, target: { ids: [...chosen] } })} clear={() => setChosen(new Set())} />}
      <div class="list-frame" ref={frame}>
        {list.complete.value !== null && !rows.length ? (
          <NoExecutions filtered={wanted !== ""} />
        ) : (
          <GridTable
            key={wanted}
            label="Executions"
            rows={rows}
            columns={EXECUTION_COLUMNS}
            keyOf={(item) => item.execution_id}
            compact={(item) => <CompactExecution item={item} />}
            open={(item) => navigate(executionHref(item.execution_id))}
            more={() => void list.more()}
            selection={may("operator") ? { chosen, choose: setChosen } : undefined}
            foot={
              <>
                <span>{list.complete.value === null ? "Loading…" : `${plural(rows.length, "execution")}${list.complete.value ? "" : " so far"}`}</span>
                {fresh > 0 && <Button small onClick={() => list.showFresh()}>Show {plural(fresh, "new one")}</Button>}
                <span class="push">Times in {zone.value}</span>
              </>
            }
          />
        )}
      </div>
      {bulk && <BulkDialog act={bulk.act} target={bulk.target} close={(done) => { setBulk(null); if (done) setChosen(new Set()); }} />}
    </main>
  );
}

function Filters({ filter }: { filter: ListFilter }) {
  const [open, setOpen] = useState(Boolean(filter.label || filter.error_kind || filter.version || filter.children));
  const text = (key: "q" | "path" | "label" | "error_kind" | "version", label: string, extra = "", placeholder = "") => (
    <div class={`field ${extra}`}>
      <label for={`filter-${key}`}>{label}</label>
      <input id={`filter-${key}`} class="input" type="search" placeholder={placeholder} value={filter[key]} onChange={(event) => setQuery({ [key]: event.currentTarget.value.trim() })} />
    </div>
  );
  return (
    <form class={`filters ${open ? "open" : ""}`} role="search" aria-label="Filter executions" onSubmit={(event) => { event.preventDefault(); (document.activeElement as HTMLElement | null)?.blur(); }}>
      {text("q", "Search", "broad", "id, path, label or error")}
      <div class="field seldom">
        <label for="filter-status">Status</label>
        <select id="filter-status" class="input" value={filter.status} onChange={(event) => setQuery({ status: event.currentTarget.value })}>
          <option value="">any</option>
          {STATUSES.map((status) => <option key={status} value={status}>{status}</option>)}
        </select>
      </div>
      {text("path", "Path", "seldom", "begins with")}
      <div class="field seldom">
        <label for="filter-since">Started</label>
        <select id="filter-since" class="input" value={filter.since} onChange={(event) => setQuery({ since: event.currentTarget.value, until: "" })}>
          {PERIODS.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
          {!PERIODS.some(([value]) => value === filter.since) && <option value={filter.since}>since {filter.since}</option>}
        </select>
      </div>
      <Button kind="bare" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Fewer" : "More"}</Button>
      {open && (
        <>
          {text("label", "Label", "", "name=value")}
          {text("error_kind", "Kind of error")}
          {text("version", "Version", "", "needs a path")}
          <label class="check"><input type="checkbox" checked={filter.children} onChange={(event) => setQuery({ children: event.currentTarget.checked })} />with children</label>
        </>
      )}
    </form>
  );
}

function ChosenBar({ chosen, ask, clear }: { chosen: ReadonlySet<string>; ask: (act: Act) => void; clear: () => void }) {
  const ids = [...chosen];
  return (
    <div class="chosen-bar" role="status">
      <strong>{plural(ids.length, "execution")} chosen</strong>
      <Button small icon="stop" onClick={() => ask("cancel")}>Cancel…</Button>
      <Button small icon="retry" onClick={() => ask("retry")}>Retry…</Button>
      <Button small onClick={() => ask("signal")}>Signal…</Button>
      {ids.length === 2 && <LinkButton small href={href(`/compare/${ids[0]}/${ids[1]}`)}>Compare</LinkButton>}
      <Button small kind="bare" class="push" onClick={clear}>Choose none</Button>
    </div>
  );
}

function NoExecutions({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <Empty title="None matches" action={<LinkButton href={href("/executions")}>Show all</LinkButton>}>No execution fits this filter.</Empty>
  ) : (
    <Empty title="Nothing was run yet" action={<LinkButton kind="primary" href={href("/playbooks")}>Choose a playbook</LinkButton>}>An execution appears here the moment it starts, whoever starts it.</Empty>
  );
}
