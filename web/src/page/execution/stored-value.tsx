import { useState } from "preact/hooks";
import { address, asProblem, get, isOffline, segments } from "../../api/client";
import type { ProblemDocument, ResultRows } from "../../api/types";
import { isTable, type Marker } from "../../format/json";
import { bytes, grouped } from "../../format/number";
import { Button, Problem } from "../../view/parts";
import { Value } from "../../view/value";
import { stretchesOf, tailOf } from "./list-parts";

const ROWS = 100;
type Rows = Pick<ResultRows, "offset" | "rows" | "total" | "next_offset">;

interface StoredPlace {
  readonly route: string;
  readonly query: { store: string; path: string[] };
}

/** Where a reference leads: `[STORE:]EXECUTION/HASH`, and the part of the value that it means. */
export function placeOf(key: unknown, path: unknown = []): StoredPlace | null {
  const found = /^(?:(\w+):)?([^/:]+)\/([0-9a-f]{64})$/.exec(typeof key === "string" ? key : "");
  if (!found) return null;
  return { route: segments("results", found[2]!, found[3]!), query: { store: found[1] ?? "", path: Array.isArray(path) ? path.map(String) : [] } };
}

/** A large value that is kept apart: its preview, then rows as they are asked for, a hundred at a time. */
export function StoredValue({ marker }: { marker: Marker }) {
  const [page, setPage] = useState<Rows>();
  const [problem, setProblem] = useState<ProblemDocument>();
  const [busy, setBusy] = useState(false);
  const place = marker.$noetl === "ref" ? placeOf(marker.key, marker.path) : null;
  const readable = place !== null || marker.$noetl === "manifest";
  const read = async (offset: number) => {
    setBusy(true);
    try {
      setPage(place ? await rowsAt(place, offset, ROWS) : await rowsOfParts(marker, offset));
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  const size = typeof marker.size === "number" ? `, ${bytes(marker.size)}` : "";
  return (
    <div class="stored">
      <p class="row wrap">
        <span class="badge">kept apart{size}</span>
        {readable && !page && <Button small disabled={busy} onClick={() => void read(0)}>Show {ROWS} rows</Button>}
        {page && <Pager page={page} busy={busy} read={read} />}
        {place && !place.query.path.length && !isOffline() && <a href={address(place.route, { store: place.query.store })} download="value.json">Download</a>}
      </p>
      {problem && <Problem problem={problem} />}
      {page ? <PageRows key={page.offset} page={page} /> : typeof marker.preview === "string" && marker.preview && <code class="muted">{marker.preview}</code>}
    </div>
  );
}

function Pager({ page, busy, read }: { page: Rows; busy: boolean; read: (offset: number) => Promise<void> }) {
  const end = page.offset + page.rows.length;
  const total = page.total === null ? "" : ` of ${grouped(page.total)}`;
  const paged = page.offset > 0 || page.next_offset !== null;
  return (
    <>
      {paged && <Button small disabled={busy || page.offset === 0} onClick={() => void read(Math.max(0, page.offset - ROWS))}>Previous</Button>}
      {paged && <Button small disabled={busy || page.next_offset === null} onClick={() => void read(page.next_offset!)}>Next</Button>}
      <span class="muted small" role="status">{page.rows.length ? `rows ${grouped(page.offset + 1)}–${grouped(end)}${total}` : "no rows"}</span>
    </>
  );
}

/** Rows that are mappings stand in a table; others keep the numbers that they have in the value. */
function PageRows({ page }: { page: Rows }) {
  const reference = (marker: Marker) => <StoredValue marker={marker} />;
  const rows = isTable(page.rows) ? page.rows : Object.fromEntries(page.rows.map((row, index) => [`#${page.offset + index + 1}`, row]));
  return <Value value={rows} open={1} reference={reference} copied={page.rows} />;
}

/** What is asked for the first page of its rows. */
export function firstRows(marker: Marker): [route: string, query: Record<string, string | number | readonly string[]>][] {
  const place = marker.$noetl === "ref" ? placeOf(marker.key, marker.path) : null;
  if (place) return [[place.route, { ...place.query, rows: 0, limit: ROWS }]];
  if (marker.$noetl !== "manifest") return [];
  return stretchesOf(marker, 0, ROWS).stretches.flatMap(({ key, from, count }) => {
    const part = placeOf(key);
    return part ? [[part.route, { ...part.query, rows: from, limit: count }]] : [];
  });
}

function rowsAt(place: StoredPlace, offset: number, limit: number): Promise<ResultRows> {
  return get<ResultRows>(place.route, { query: { ...place.query, rows: offset, limit } });
}

/** A page of a list that is stored in parts: only those parts are read that it is in. */
async function rowsOfParts(marker: Marker, offset: number): Promise<Rows> {
  const { stretches, total } = stretchesOf(marker, offset, ROWS);
  const pages = await Promise.all(
    stretches.map(async ({ key, from, count }) => {
      const place = placeOf(key);
      if (!place) throw new Error(`no stored value is called ${key}`);
      return (await rowsAt(place, from, count)).rows;
    }),
  );
  const rows = [...pages.flat(), ...tailOf(marker, offset, ROWS)];
  const next = offset + rows.length;
  return { offset, rows, total, next_offset: rows.length && next < total ? next : null };
}
