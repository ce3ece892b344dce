import { useState } from "preact/hooks";
import { address, asProblem, get, segments } from "../../api/client";
import type { ProblemDocument, ResultRows } from "../../api/types";
import type { Marker } from "../../format/json";
import { bytes, grouped } from "../../format/number";
import { Button, Problem } from "../../view/parts";
import { Value } from "../../view/value";

const ROWS = 100;

/** Where a reference leads: `[STORE:]EXECUTION/HASH`, and the part of the value that it means. */
export function placeOf(marker: Marker): { route: string; query: { store: string; path: string[] } } | null {
  const found = /^(?:(\w+):)?([^/:]+)\/([0-9a-f]{64})$/.exec(typeof marker.key === "string" ? marker.key : "");
  if (!found) return null;
  const path = Array.isArray(marker.path) ? marker.path.map(String) : [];
  return { route: segments("results", found[2]!, found[3]!), query: { store: found[1] ?? "", path } };
}

/** A large value that is kept apart: its preview, then rows as they are asked for, never all at once. */
export function StoredValue({ marker }: { marker: Marker }) {
  const [pages, setPages] = useState<readonly ResultRows[]>([]);
  const [problem, setProblem] = useState<ProblemDocument>();
  const place = placeOf(marker);
  const rows = pages.flatMap((page) => page.rows);
  const last = pages[pages.length - 1];
  const next = last ? last.next_offset : 0;
  const read = async () => {
    try {
      const page = await get<ResultRows>(place!.route, { query: { ...place!.query, rows: next ?? 0, limit: ROWS } });
      setPages([...pages, page]);
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  const size = typeof marker.size === "number" ? `, ${bytes(marker.size)}` : "";
  return (
    <div class="stored">
      <p class="row wrap">
        <span class="badge">kept apart{size}</span>
        {place && next !== null && <Button small onClick={() => void read()}>{rows.length ? `Next ${ROWS} rows` : `Show ${ROWS} rows`}</Button>}
        {place && !place.query.path.length && <a href={address(place.route, { store: place.query.store })} download="value.json">Download</a>}
        {last && <span class="muted small">{grouped(rows.length)} {last.total === null ? "rows" : `of ${grouped(last.total)} rows`}</span>}
      </p>
      {problem && <Problem problem={problem} />}
      {rows.length > 0 ? <Value value={rows} open={1} /> : typeof marker.preview === "string" && marker.preview && <code class="muted">{marker.preview}</code>}
    </div>
  );
}
