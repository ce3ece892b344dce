/** How an execution looks in a list. */
import type { ExecutionItem } from "../../api/types";
import { shortId } from "../../format/number";
import type { Column } from "../../list/grid-table";
import { href } from "../../router";
import { Labels } from "../../view/parts";
import { Status } from "../../view/status";
import { Duration, Time } from "../../view/time";

export function executionHref(id: string): string {
  return href(`/executions/${id}`);
}

function Origin({ item }: { item: ExecutionItem }) {
  return (
    <>
      {item.parent && <span class="badge">child</span>}
      {item.forked_from && <span class="badge">fork</span>}
    </>
  );
}

export const EXECUTION_COLUMNS: readonly Column<ExecutionItem>[] = [
  { title: "Status", width: "112px", cell: (item) => <Status status={item.status} /> },
  {
    title: "Playbook",
    width: "minmax(180px, 2fr)",
    cell: (item) => <span class="row"><a class="plain cut" href={executionHref(item.execution_id)}>{item.path || "inline playbook"}</a><Origin item={item} /></span>,
  },
  { title: "Execution", width: "92px", cell: (item) => <code class="muted" title={item.execution_id}>{shortId(item.execution_id)}</code> },
  { title: "Started", width: "minmax(160px, 252px)", cell: (item) => <Time at={item.started_at} /> },
  { title: "Duration", width: "96px", right: true, cell: (item) => <Duration from={item.started_at} until={item.ended_at} known={item.duration_ms} /> },
  { title: "Events", width: "64px", right: true, from: 1200, cell: (item) => item.events },
  { title: "Labels", width: "minmax(120px, 1.2fr)", from: 1050, cell: (item) => <span class="row"><Labels labels={item.labels} /></span> },
];

export function CompactExecution({ item }: { item: ExecutionItem }) {
  return (
    <>
      <span class="row"><a class="plain cut" href={executionHref(item.execution_id)}>{item.path || "inline playbook"}</a><Origin item={item} /><span class="push"><Status status={item.status} /></span></span>
      <span class="row small muted"><Time at={item.started_at} only="relative" /><span>·</span><Duration from={item.started_at} until={item.ended_at} known={item.duration_ms} /><code class="push">{shortId(item.execution_id)}</code></span>
    </>
  );
}
