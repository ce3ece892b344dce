/** Which rows of a long list are drawn: those in view, and some more on both sides. */

export interface Range {
  first: number;
  /** The row behind the last one. */
  end: number;
}

const BEYOND = 8;

export function rowsInView(count: number, rowHeight: number, top: number, height: number): Range {
  const first = Math.max(0, Math.min(count, Math.floor(top / rowHeight)) - BEYOND);
  const end = Math.min(count, Math.ceil((top + height) / rowHeight) + BEYOND);
  return { first, end: Math.max(first, end) };
}

/** Where to scroll so that a row is in view; the same place if it is. */
export function scrollFor(index: number, rowHeight: number, top: number, height: number): number {
  const begin = index * rowHeight;
  if (begin < top) return begin;
  if (begin + rowHeight > top + height) return begin + rowHeight - height;
  return top;
}
