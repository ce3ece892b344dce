/** The pages: their addresses, and what loads them. A page is a module with a default component. */
import type { ComponentType } from "preact";
import { match } from "../router";

export type Parameters = Record<string, string>;
export type Page = ComponentType<Parameters>;
interface Row {
  pattern: string;
  title: string;
  load: () => Promise<{ default: ComponentType<never> }>;
}

const PAGES: readonly Row[] = [
  { pattern: "/", title: "Home", load: () => import("../page/home") },
  { pattern: "/executions", title: "Executions", load: () => import("../page/executions") },
  { pattern: "/login", title: "Sign in", load: () => import("../page/login") },
];

export interface Destination {
  path: string;
  title: string;
  /** The second key after `g`. */
  key: string;
  role: "viewer" | "admin";
}

/** What the navigation names, in its order. */
export const DESTINATIONS: readonly Destination[] = [
  { path: "/", title: "Home", key: "h", role: "viewer" },
  { path: "/executions", title: "Executions", key: "e", role: "viewer" },
];

export function pageAt(path: string): { row: Row; parameters: Parameters } | null {
  for (const row of PAGES) {
    const parameters = match(row.pattern, path);
    if (parameters) return { row, parameters };
  }
  return null;
}
