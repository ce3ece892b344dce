import { useState } from "preact/hooks";
import { address, asProblem, get } from "../../api/client";
import type { ProblemDocument } from "../../api/types";
import type { Marker } from "../../format/json";
import { bytes, plural } from "../../format/number";
import { segments } from "../../api/client";
import { Button, Problem } from "../../view/parts";
import { Value } from "../../view/value";

const ROWS = 100;

interface ResultRows {
  rows: unknown[];
  total: number | null;
  next: number | null;
}

/** A large value that is kept apart: its preview, then rows as they are asked for, never all at once. */
export function StoredValue({ execution, marker }: { execution: string; marker: Marker }) {
  const [rows, setRows] = useState<unknown[]>([]);
  const [next, setNext] = useState<number | null>(0);
  const [problem, setProblem] = useState<ProblemDocument>();
  const key = typeof marker.key === "string" ? marker.key : "";
  const owner = typeof marker.execution_id === "string" ? marker.execution_id : execution;
  const size = typeof marker.size === "number" ? bytes(marker.size) : "";
  const route = segments("results", owner, key);
  const read = async () => {
    try {
      const page = await get<ResultRows>(route, { query: { rows: ROWS, from: next ?? 0 } });
      setRows([...rows, ...page.rows]);
      setNext(page.next);
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <div class="stored">
      <p class="row wrap">
        <span class="badge">stored value {size}</span>
        {next !== null && <Button small onClick={() => void read()}>{rows.length ? `Next ${ROWS} rows` : `Show ${ROWS} rows`}</Button>}
        {key && <a href={address(route)} download={key.replaceAll("/", "-")}>Download</a>}
        {rows.length > 0 && <span class="muted small">{plural(rows.length, "row")} shown</span>}
      </p>
      {problem && <Problem problem={problem} />}
      {rows.length > 0 ? <Value value={rows} open={1} /> : marker.preview !== undefined && <Value value={marker.preview} open={1} />}
    </div>
  );
}
