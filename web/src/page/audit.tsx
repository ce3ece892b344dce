import { useEffect, useState } from "preact/hooks";
import { asProblem, get } from "../api/client";
import type { AuditItem, AuditPage, ProblemDocument } from "../api/types";
import { plural } from "../format/number";
import { GridTable, type Column } from "../list/grid-table";
import { zone } from "../preferences";
import { Empty, PageHead, Problem } from "../view/parts";
import { Status } from "../view/status";
import { Time } from "../view/time";

function Answer({ status }: { status: number }) {
  return <Status status={status < 400 ? "completed" : "failed"} word={status < 400 ? "done" : `refused, ${status}`} />;
}

const COLUMNS: readonly Column<AuditItem>[] = [
  { title: "When", width: "252px", cell: (item) => <Time at={item.at} /> },
  { title: "Who", width: "minmax(100px, 0.6fr)", cell: (item) => item.by },
  { title: "Role", width: "84px", from: 800, cell: (item) => <span class="muted">{item.role}</span> },
  { title: "Did", width: "minmax(120px, 0.8fr)", cell: (item) => item.action },
  { title: "To", width: "minmax(120px, 1.4fr)", cell: (item) => <code title={item.target}>{item.target}</code> },
  { title: "From", width: "110px", from: 1000, cell: (item) => <span class="muted">{item.address}</span> },
  { title: "Answer", width: "124px", cell: (item) => <Answer status={item.status} /> },
];

export default function Audit() {
  const [rows, setRows] = useState<AuditItem[]>([]);
  const [cursor, setCursor] = useState<string | null | undefined>(undefined);
  const [problem, setProblem] = useState<ProblemDocument>();
  const [busy, setBusy] = useState(false);
  const more = async () => {
    if (busy || cursor === null) return;
    setBusy(true);
    try {
      const page = await get<AuditPage>("audit", { query: { limit: 200, cursor } });
      setRows([...rows, ...page.audit]);
      setCursor(page.next_cursor);
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => void more(), []);
  return (
    <main id="main" class="fill">
      <PageHead title="Audit" />
      {problem && <Problem problem={problem} retry={() => void more()} />}
      <div class="list-frame">
        {cursor !== undefined && !rows.length ? (
          <Empty title="Nobody has changed anything yet">Every request that changes something stands here, also one that was refused.</Empty>
        ) : (
          <GridTable
            label="Audit"
            rows={rows}
            columns={COLUMNS}
            keyOf={(item) => `${item.at} ${item.by} ${item.action} ${item.target}`}
            more={() => cursor !== undefined && void more()}
            compact={(item) => (
              <>
                <span class="row"><strong class="cut">{item.action}</strong><span class="push"><Answer status={item.status} /></span></span>
                <span class="row small muted"><span>{item.by}</span><span>·</span><Time at={item.at} only="relative" /><code class="push cut">{item.target}</code></span>
              </>
            )}
            foot={<><span>{plural(rows.length, "entry", "entries")}{cursor ? " so far" : ""}</span><span class="push">Times in {zone.value}</span></>}
          />
        )}
      </div>
    </main>
  );
}
