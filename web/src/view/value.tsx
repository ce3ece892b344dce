/** A value as a tree or a table. Long ones open a hundred items at a time; large ones are read from the server. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { bytes, plural } from "../format/number";
import { columnsOf, isMapping, isMarker, isTable, oneLine, type Mapping, type Marker } from "../format/json";
import { Icon } from "./icon";
import { Button, copyText, Segments } from "./parts";

const ITEMS = 100;

interface ValueProps {
  readonly value: unknown;
  /** How many levels are open at first. */
  readonly open?: number;
  /** Draws what stands for a large value. */
  readonly reference?: (marker: Marker) => ComponentChildren;
  /** What is copied, where that is not the value as it is shown. */
  readonly copied?: unknown;
}

export function Value({ value, open = 1, reference, copied = value }: ValueProps) {
  const [as, setAs] = useState<"tree" | "table">("table");
  const table = isTable(value);
  return (
    <div class="stack tight">
      {(table || isMapping(value) || Array.isArray(value)) && (
        <div class="row">
          {table && <Segments label="Show as" options={[["table", "Table"], ["tree", "Tree"]]} chosen={as} choose={setAs} />}
          <Button small kind="bare" icon="copy" class="push" onClick={() => void copyText(JSON.stringify(copied, null, 2))}>Copy JSON</Button>
        </div>
      )}
      {table && as === "table" ? <ValueTable rows={value} /> : <div class="value"><Node value={value} open={open} reference={reference} /></div>}
    </div>
  );
}

function Node({ name, value, open, reference }: { name?: string; value: unknown; open: number; reference?: (marker: Marker) => ComponentChildren }) {
  const [opened, setOpened] = useState(open > 0);
  const [limit, setLimit] = useState(ITEMS);
  const label = name !== undefined && <span class="key">{name}: </span>;
  if (isMarker(value)) return <div class="node">{label}{reference && value.$noetl !== "secret" ? reference(value) : <MarkerText marker={value} />}</div>;
  const entries = Array.isArray(value) ? value.map((item, index) => [String(index), item] as const) : isMapping(value) ? Object.entries(value) : null;
  if (!entries) return <div class="node">{label}<Leaf value={value} /></div>;
  const count = Array.isArray(value) ? plural(entries.length, "item") : plural(entries.length, "key");
  if (!entries.length) return <div class="node">{label}<span class="brief">{Array.isArray(value) ? "[]" : "{}"}</span></div>;
  return (
    <div class="node">
      <button type="button" class="twist" aria-expanded={opened} onClick={() => setOpened(!opened)}>
        <Icon name="chevron" size={12} />
        {label}
        <span class="brief">{opened ? count : oneLine(value, 80)}</span>
      </button>
      {opened && entries.slice(0, limit).map(([key, item]) => <Node key={key} name={key} value={item} open={open - 1} reference={reference} />)}
      {opened && entries.length > limit && (
        <Button small kind="bare" onClick={() => setLimit(limit + ITEMS)}>{plural(entries.length - limit, "more item")}: show {Math.min(ITEMS, entries.length - limit)}</Button>
      )}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === "string") return <LongText text={value} />;
  if (typeof value === "number") return <span class="number">{String(value)}</span>;
  return <span class="word">{value === undefined ? "nothing" : String(value)}</span>;
}

function LongText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  if (text.length <= 400 || whole) return <span class="text">"{text}"</span>;
  return (
    <>
      <span class="text">"{text.slice(0, 300)}…"</span> <Button small kind="bare" onClick={() => setWhole(true)}>all {plural(text.length, "character")}</Button>
    </>
  );
}

function MarkerText({ marker }: { marker: Marker }) {
  if (marker.$noetl === "secret") return <span class="secret">secret, masked</span>;
  const size = typeof marker.size === "number" ? ` of ${bytes(marker.size)}` : "";
  return <span class="brief">a large value{size}, kept apart</span>;
}

function Cell({ value }: { value: unknown }) {
  if (isMarker(value)) return <MarkerText marker={value} />;
  return <>{typeof value === "string" ? value : oneLine(value, 80)}</>;
}

function ValueTable({ rows }: { rows: readonly Mapping[] }) {
  const [limit, setLimit] = useState(ITEMS);
  const columns = columnsOf(rows);
  return (
    <>
      <div class="value-table" tabIndex={0} role="region" aria-label="Rows of the value">
        <table>
          <thead><tr>{columns.map((name) => <th key={name}>{name}</th>)}</tr></thead>
          <tbody>
            {rows.slice(0, limit).map((row, index) => (
              <tr key={index}>{columns.map((name) => <td key={name} title={oneLine(row[name], 1_000)}><Cell value={row[name]} /></td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > limit && <div><Button small kind="bare" onClick={() => setLimit(limit + ITEMS)}>{plural(rows.length - limit, "more row")}: show {Math.min(ITEMS, rows.length - limit)}</Button></div>}
    </>
  );
}
