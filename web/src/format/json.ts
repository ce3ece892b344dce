/** What values look like: kinds, references, one line of text. */

export type Mapping = Record<string, unknown>;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface Marker extends Mapping {
  $noetl: "ref" | "manifest" | "secret";
}

/** A reference to a large value, or a masked secret. */
export function isMarker(value: unknown): value is Marker {
  return isMapping(value) && typeof value.$noetl === "string";
}

/** One line that says what a value is, at most `limit` characters long. What is kept apart has its preview. */
export function oneLine(value: unknown, limit = 120): string {
  const kept = isMarker(value) && value.$noetl !== "secret";
  const text = kept ? `kept apart: ${typeof value.preview === "string" ? value.preview : "…"}` : JSON.stringify(value) ?? "";
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

/** Whether it is a list of mappings that a table shows better than a tree. */
export function isTable(value: unknown): value is Mapping[] {
  return Array.isArray(value) && value.length > 0 && value.slice(0, 20).every((row) => isMapping(row) && !isMarker(row));
}

export function columnsOf(rows: readonly Mapping[]): string[] {
  return [...new Set(rows.slice(0, 100).flatMap((row) => Object.keys(row)))];
}

/** What a text is as JSON, or what is wrong with it. */
export function jsonOf(text: string): { value: unknown; wrong: string | null } {
  try {
    return { value: JSON.parse(text), wrong: null };
  } catch (error) {
    return { value: undefined, wrong: error instanceof Error ? error.message : "is no JSON" };
  }
}

/** As `jsonOf`, of a mapping; nothing is an empty one. */
export function mappingOf(text: string): { value: Mapping; wrong: string | null } {
  if (!text.trim()) return { value: {}, wrong: null };
  const { value, wrong } = jsonOf(text);
  if (wrong !== null) return { value: {}, wrong };
  if (!isMapping(value)) return { value: {}, wrong: "must be an object: {…}" };
  return { value, wrong: null };
}
