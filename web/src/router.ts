/** The URL is the state. Paths here begin with `/` and do not have the prefix that `<base>` names. */
import { computed, signal, type ReadonlySignal } from "@preact/signals";

export type Query = Record<string, string | number | boolean | null | undefined>;
export interface Place {
  path: string;
  query: URLSearchParams;
}

const prefix = new URL(document.baseURI).pathname.replace(/\/$/, "");
const current = signal<Place>(read());
/** Asked before a page is left; `false` keeps it. */
let guard: (() => boolean) | null = null;

export const place = computed(() => current.value);
export const path = computed(() => current.value.path);
let arrived = false;
const queryValues = new Map<string, ReadonlySignal<string | null>>();
/** What the page shows and the address will when it rests, see `settleQuery` and `RestingQuery`. */
let unwritten: Query = {};
let writeTimer: ReturnType<typeof setTimeout> | undefined;
const WRITE_PAUSE = 100;

/** One key of the query. Who reads it renders again when that key changes, not with every event of a slider. */
export function queryValue(key: string): string | null {
  let value = queryValues.get(key);
  if (!value) queryValues.set(key, (value = computed(() => current.value.query.get(key))));
  return value.value;
}

/** Whether a new path was gone to since this was asked: then the head of its page takes the focus. */
export function takeArrival(): boolean {
  const before = arrived;
  arrived = false;
  return before;
}

function read(url: URL | Location = location): Place {
  return {
    path: decoded(url.pathname.slice(prefix.length)) || "/",
    query: new URLSearchParams(url.search),
  };
}

/** A path as it is written in `href`; what is no such path stays as it is, and no page matches. */
function decoded(path: string): string {
  try {
    return path.split("/").map(decodeURIComponent).join("/");
  } catch {
    return path;
  }
}

function writeLater(changes: Query): void {
  Object.assign(unwritten, changes);
  clearTimeout(writeTimer);
  writeTimer = setTimeout(writeAddress, WRITE_PAUSE);
}

/** Always into the entry of the history that is shown: Back leads to where things stood before something was chosen. */
function writeAddress(): void {
  clearTimeout(writeTimer);
  if (!Object.keys(unwritten).length) return;
  const address = withQuery(unwritten);
  unwritten = {};
  history.replaceState(null, "", address);
  current.value = read();
}

/** The address of a path with a query; keys that are null, undefined, empty or false are left out. */
export function href(to: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value != null && value !== "" && value !== false);
  const text = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return prefix + encodeURI(to).replaceAll("?", "%3F").replaceAll("#", "%23") + (text ? `?${text}` : "");
}

export function navigate(address: string, how: "push" | "replace" = "push"): void {
  const before = current.value.path;
  if (before !== pathOf(address) && guard && !guard()) return;
  if (before !== pathOf(address)) guard = null;
  writeAddress();
  history[how === "push" ? "pushState" : "replaceState"](null, "", address);
  current.value = read();
  if (before !== current.value.path) {
    if (how === "push") scrollTo(0, 0);
    arrived = true;
  }
}

function pathOf(address: string): string {
  return decoded(new URL(address, document.baseURI).pathname.slice(prefix.length)) || "/";
}

/** Changes keys of the query and leaves the others. `replace`: Back does not come here again. */
export function setQuery(changes: Query, how: "push" | "replace" = "replace"): void {
  writeAddress();
  navigate(withQuery(changes), how);
}

function withQuery(changes: Query): string {
  const { path: shown, query } = current.peek();
  return href(shown, { ...Object.fromEntries(query), ...changes });
}

/**
 * As `setQuery`, for what changes with every frame: the page follows at once, the address when it rests.
 *
 * Writing it takes some 3 ms, and a frame has 8 for all scripts.
 */
export function settleQuery(changes: Query): void {
  current.value = read(new URL(withQuery(changes), document.baseURI));
  writeLater(changes);
}

addEventListener("pagehide", writeAddress);

/** A key of the query, as `settleQuery`, that moves without all else that reads the place: a zoom, say. */
export class RestingQuery {
  readonly value = signal<string | null>(null);

  constructor(private readonly key: string) {
    this.value.value = current.peek().query.get(key);
  }

  /** Follows the URL until what it gives is called. */
  follow(): () => void {
    return current.subscribe(({ query }) => {
      if (!(this.key in unwritten)) this.value.value = query.get(this.key);
    });
  }

  set(text: string | null): void {
    this.value.value = text;
    writeLater({ [this.key]: text });
  }
}

/** Keeps the page from being left while `mayLeave` says no. Gives what ends that. */
export function guardLeaving(mayLeave: () => boolean): () => void {
  guard = mayLeave;
  const beforeUnload = (event: BeforeUnloadEvent) => {
    if (!mayLeave()) event.preventDefault();
  };
  addEventListener("beforeunload", beforeUnload);
  return () => {
    guard = null;
    removeEventListener("beforeunload", beforeUnload);
  };
}

addEventListener("popstate", () => {
  // It would be written over the entry that was gone to.
  clearTimeout(writeTimer);
  unwritten = {};
  const { path: before, query } = current.value;
  const next = read();
  if (before !== next.path && guard && !guard()) {
    // The browser has gone already: its entry is put back on top.
    history.pushState(null, "", href(before, Object.fromEntries(query)));
    return;
  }
  current.value = next;
  if (before !== current.value.path) {
    guard = null;
    arrived = true;
  }
});

/** Links of the page are followed without loading it again; those with a target, or into the API, are not. */
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = (event.composedPath()[0] as Element | null)?.closest?.("a") ?? (event.target as Element).closest("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  const target = pathOf(link.href);
  if (!link.pathname.startsWith(prefix) || target.startsWith("/api/") || link.getAttribute("href")?.startsWith("#")) return;
  event.preventDefault();
  writeAddress();
  if (link.href !== location.href) navigate(link.href);
});

/** Matches `/executions/:id` or, with a last part `:path*` that may have slashes, `/run/:path*`. */
export function match(pattern: string, actual: string): Record<string, string> | null {
  const names = pattern.split("/");
  const parts = actual.split("/");
  const found: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const part = parts[index];
    if (part === undefined) return null;
    if (name.startsWith(":") && name.endsWith("*")) {
      found[name.slice(1, -1)] = parts.slice(index).join("/");
      return parts.slice(index).join("") ? found : null;
    }
    if (name.startsWith(":")) {
      if (!part) return null;
      found[name.slice(1)] = part;
    } else if (name !== part) return null;
  }
  return names.length === parts.length ? found : null;
}
