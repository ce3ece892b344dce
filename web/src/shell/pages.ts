/** The pages: their addresses, and what loads them. A page is a module with a default component. */
import type { ComponentType } from "preact";
import { match } from "../router";

export type Parameters = Record<string, string>;
export type Page = ComponentType<Parameters>;
export interface Row {
  pattern: string;
  title: string;
  load: () => Promise<{ default: ComponentType<never> }>;
}

const PAGES: readonly Row[] = [
  { pattern: "/", title: "Home", load: () => import("../page/home") },
  { pattern: "/executions", title: "Executions", load: () => import("../page/executions") },
  { pattern: "/executions/:id", title: "Execution", load: () => import("../page/execution") },
  { pattern: "/compare/:a/:b", title: "Compare", load: () => import("../page/compare") },
  { pattern: "/playbooks", title: "Playbooks", load: () => import("../page/playbooks") },
  { pattern: "/playbooks/:path*", title: "Playbook", load: () => import("../page/playbook") },
  { pattern: "/run/:path*", title: "Run", load: () => import("../page/run") },
  { pattern: "/edit", title: "New playbook", load: () => import("../page/edit") },
  { pattern: "/edit/:path*", title: "Edit", load: () => import("../page/edit") },
  { pattern: "/inbox", title: "Inbox", load: () => import("../page/inbox") },
  { pattern: "/workers", title: "Workers", load: () => import("../page/workers") },
  { pattern: "/credentials", title: "Credentials", load: () => import("../page/credentials") },
  { pattern: "/tokens", title: "Tokens", load: () => import("../page/tokens") },
  { pattern: "/audit", title: "Audit", load: () => import("../page/audit") },
  { pattern: "/login", title: "Sign in", load: () => import("../page/login") },
];

export interface Destination {
  path: string;
  title: string;
  /** The second key after `g`. */
  key: string;
  role: "viewer" | "admin";
}

/** What the navigation names, in its order. Beside the inbox there is room for how many wait. */
export const DESTINATIONS: readonly Destination[] = [
  { path: "/", title: "Home", key: "h", role: "viewer" },
  { path: "/executions", title: "Executions", key: "e", role: "viewer" },
  { path: "/playbooks", title: "Playbooks", key: "p", role: "viewer" },
  { path: "/workers", title: "Workers", key: "w", role: "viewer" },
  { path: "/inbox", title: "Inbox", key: "i", role: "viewer" },
  { path: "/credentials", title: "Credentials", key: "c", role: "admin" },
  { path: "/tokens", title: "Tokens", key: "t", role: "admin" },
  { path: "/audit", title: "Audit", key: "a", role: "admin" },
];

export function pageAt(path: string): { row: Row; parameters: Parameters } | null {
  for (const row of PAGES) {
    const parameters = match(row.pattern, path);
    if (parameters) return { row, parameters };
  }
  return null;
}
