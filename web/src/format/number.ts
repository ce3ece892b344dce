/** Numbers and sizes for people. */

/** `1 run`, `2 runs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** With a thin space between thousands from five digits on. */
export function grouped(count: number): string {
  const text = String(count);
  return /^\d{5,}$/.test(text) ? text.replace(/\B(?=(\d{3})+$)/g, "\u202f") : text;
}

export function bytes(count: number): string {
  for (const [size, unit] of [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]] as const)
    if (count >= size) return `${(count / size).toFixed(count >= 100 * size ? 0 : 1)} ${unit}`;
  return plural(count, "byte");
}

/** The end of an id: its beginning is the time, and neighbours share it. */
export function shortId(id: string): string {
  return id.length > 12 ? id.slice(-8) : id;
}
