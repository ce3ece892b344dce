/** What a text is as JSON, or what is wrong with it. */
export function jsonOf(text: string): { value: unknown; wrong: string | null } {
  try {
    return { value: JSON.parse(text), wrong: null };
  } catch (error) {
    return { value: undefined, wrong: error instanceof Error ? error.message : "is no JSON" };
  }
}

/** As `jsonOf`, of a mapping; nothing is an empty one. */
export function mappingOf(text: string): { value: Record<string, unknown>; wrong: string | null } {
  if (!text.trim()) return { value: {}, wrong: null };
  const { value, wrong } = jsonOf(text);
  if (wrong !== null) return { value: {}, wrong };
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { value: {}, wrong: "must be an object: {…}" };
  return { value: value as Record<string, unknown>, wrong: null };
}
