/** The URL is the state. Paths here begin with `/` and do not have the prefix that `<base>` names. */
import { computed, signal } from "@preact/signals";

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

/** Whether a new path was gone to since this was asked: then the head of its page takes the focus. */
export function takeArrival(): boolean {
  const before = arrived;
  arrived = false;
  return before;
}

function read(): Place {
  return {
    path: decodeURI(location.pathname.slice(prefix.length)) || "/",
    query: new URLSearchParams(location.search),
  };
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
  history[how === "push" ? "pushState" : "replaceState"](null, "", address);
  current.value = read();
  if (before !== current.value.path) {
    if (how === "push") scrollTo(0, 0);
    arrived = true;
  }
}

function pathOf(address: string): string {
  return decodeURI(new URL(address, document.baseURI).pathname.slice(prefix.length)) || "/";
}

/** Changes keys of the query and leaves the others. `replace`: Back does not come here again. */
export function setQuery(changes: Query, how: "push" | "replace" = "replace"): void {
  const query: Query = Object.fromEntries(current.value.query);
  navigate(href(current.value.path, { ...query, ...changes }), how);
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
  const before = current.value.path;
  current.value = read();
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
