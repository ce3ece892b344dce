/** Lists that are stored in parts: which of them hold some rows. */
import type { Marker } from "../../format/json";

/** Elements `from` … `to` of the list, without `to`; before them, what is stored has `skip` others. */
interface ListPart {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly skip?: number;
}

/** `count` rows, from `from` on, of what is stored under a key. */
export interface Stretch {
  readonly key: string;
  readonly from: number;
  readonly count: number;
}

/** What is to be read for these rows, in order, and how many rows the list has. */
export function stretchesOf(marker: Marker, offset: number, limit: number): { stretches: Stretch[]; total: number } {
  const parts = (marker.chunks ?? []) as readonly ListPart[];
  const end = offset + limit;
  const stretches = parts
    .filter((part) => part.from < end && offset < part.to)
    .map((part) => {
      const first = Math.max(offset, part.from);
      return { key: part.key, from: first - part.from + (part.skip ?? 0), count: Math.min(end, part.to) - first };
    });
  return { stretches, total: Number(marker.total ?? parts[parts.length - 1]?.to ?? 0) };
}

/** Those of the rows that are in the marker itself, behind all parts. */
export function tailOf(marker: Marker, offset: number, limit: number): readonly unknown[] {
  const parts = (marker.chunks ?? []) as readonly ListPart[];
  const begin = parts[parts.length - 1]?.to ?? 0;
  const tail = (marker.tail ?? []) as readonly unknown[];
  return tail.slice(Math.max(0, offset - begin), Math.max(0, offset + limit - begin));
}
