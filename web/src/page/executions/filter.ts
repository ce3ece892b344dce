/** The filter of the list of executions, as the URL has it, and as the API takes it. */

export interface ListFilter {
  q: string;
  status: string;
  path: string;
  label: string;
  error_kind: string;
  version: string;
  since: string;
  until: string;
  /** With the executions that others started. */
  children: boolean;
}

export const STATUSES = ["running", "paused", "completed", "failed", "cancelled"] as const;
export const PERIODS = [["", "any time"], ["1h", "last hour"], ["24h", "last 24 hours"], ["7d", "last 7 days"], ["30d", "last 30 days"]] as const;
const KEYS = ["q", "status", "path", "label", "error_kind", "version", "since", "until"] as const;
const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

export function readFilter(query: URLSearchParams): ListFilter {
  const read = (key: string) => query.get(key) ?? "";
  return {
    q: read("q"),
    status: (STATUSES as readonly string[]).includes(read("status")) ? read("status") : "",
    path: read("path"),
    label: read("label"),
    error_kind: read("error_kind"),
    version: /^\d+$/.test(read("version")) ? read("version") : "",
    since: read("since"),
    until: read("until"),
    children: query.get("children") === "true",
  };
}

/** `24h` is that long before now; anything else is a time as it is. */
export function moment(text: string, now: number): string {
  const match = /^(\d+)([mhd])$/.exec(text);
  return match ? new Date(now - Number(match[1]) * UNITS[match[2]!]!).toISOString() : text;
}

/** The parameters of `GET /api/executions`. */
export function listQuery(filter: ListFilter, now: number): Record<string, string | boolean> {
  const query: Record<string, string | boolean> = { roots: !filter.children };
  for (const key of KEYS) if (filter[key]) query[key] = key === "since" || key === "until" ? moment(filter[key], now) : filter[key];
  return query;
}

/** What a bulk request is for: `where` as the list shows it, where labels are a mapping; `all` if that leaves nothing out. */
export function targetOf(filter: ListFilter, now: number): { where: Record<string, unknown>; all: boolean } {
  const where: Record<string, unknown> = filter.children ? {} : { roots: true };
  for (const key of KEYS) {
    const value = filter[key];
    if (!value) continue;
    if (key === "label") {
      const [name = "", ...rest] = value.split("=");
      where.labels = { [name]: rest.join("=") };
    } else if (key === "version") where.version = Number(value);
    else where[key] = key === "since" || key === "until" ? moment(value, now) : value;
  }
  return { where, all: !KEYS.some((key) => filter[key]) };
}

/** The `--where` of `noetl executions cancel`, `retry` and `signal`: `status=failed,path=shop/,roots=true`, or `all`. */
export function whereText(filter: ListFilter, now: number): string {
  const parts = KEYS.filter((key) => filter[key]).map((key) => `${key}=${key === "since" || key === "until" ? moment(filter[key], now) : filter[key]}`);
  if (!parts.length) return "all";
  return [...parts, ...(filter.children ? [] : ["roots=true"])].join(",");
}

/** The same filter has the same text, whatever the order in the URL. */
export function filterText(query: URLSearchParams): string {
  const filter = readFilter(query);
  const pairs = Object.entries(filter).filter(([, value]) => value);
  return new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
}
