/** Requests to the server. What it refuses comes back as `ApiError`, which has its problem document. */
import type { ProblemDocument } from "./types";

export class ApiError extends Error {
  constructor(readonly problem: ProblemDocument) {
    super(problem.detail || problem.title);
  }
  get code(): string {
    return this.problem.code;
  }
}

type Parameter = string | number | boolean | null | undefined;
export interface RequestOptions {
  query?: Record<string, Parameter | readonly string[]>;
  /** A value is sent as JSON. */
  body?: unknown;
  /** A playbook is sent as it is. */
  yaml?: string;
  signal?: AbortSignal;
}

let onUnauthenticated: () => void = () => {};
/** What is done when the server does not know who asks (any more). */
export function whenUnauthenticated(act: () => void): void {
  onUnauthenticated = act;
}

/** The parts of a path that a name with slashes is in: `catalog/shop/prices@3`. */
export function segments(...parts: (string | number)[]): string {
  return parts.map((part) => String(part).split("/").map(encodeURIComponent).join("/").replaceAll("%40", "@")).join("/");
}

/** Where a registered playbook is read, `PATH@N` or the newest: without a version, `…/net` would mean a view. */
export function playbookRoute(name: string): string {
  return segments("catalog", name.includes("@") ? name : `${name}@latest`);
}

export function address(route: string, query: RequestOptions["query"] = {}): string {
  const url = new URL(`api/${route}`, document.baseURI);
  for (const [key, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const item of value) url.searchParams.append(key, item);
    else if (value != null && value !== "" && value !== false) url.searchParams.set(key, String(value));
  }
  return url.href;
}

async function send(method: string, route: string, options: RequestOptions): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  let body: string | undefined;
  if (options.yaml !== undefined) {
    headers["content-type"] = "application/yaml";
    body = options.yaml;
  } else if (method === "POST" || method === "PUT") {
    headers["content-type"] = "application/json";
    body = JSON.stringify(options.body ?? {});
  }
  let response: Response;
  try {
    response = await fetch(address(route, options.query), { method, headers, body, signal: options.signal ?? null });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(unreachable());
  }
  if (!response.ok) throw new ApiError(await problemOf(response));
  return response;
}

function unreachable(): ProblemDocument {
  return {
    type: "about:blank",
    title: "the server does not answer",
    status: 0,
    code: "unreachable" as ProblemDocument["code"],
    hint: "It may be starting again. `noetl server status` says whether it runs.",
  };
}

async function problemOf(response: Response): Promise<ProblemDocument> {
  let problem: ProblemDocument;
  try {
    problem = (await response.json()) as ProblemDocument;
    if (typeof problem?.code !== "string") throw new TypeError("no problem document");
  } catch {
    problem = { type: "about:blank", title: response.statusText || "error", status: response.status, code: "refused" };
  }
  if (response.status === 401) onUnauthenticated();
  return problem;
}

type AnswerSource = (method: string, route: string, query: NonNullable<RequestOptions["query"]>) => unknown;
let source: AnswerSource | null = null;
/** An exported page has no server: what it asks is answered from its file, or an `ApiError`. */
export function answerFrom(kept: AnswerSource): void {
  source = kept;
}
export const isOffline = () => source !== null;

async function json<T>(method: string, route: string, options: RequestOptions = {}): Promise<T> {
  if (source) return source(method, route, options.query ?? {}) as T;
  const response = await send(method, route, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const get = <T>(route: string, options?: RequestOptions) => json<T>("GET", route, options);
export const post = <T>(route: string, options?: RequestOptions) => json<T>("POST", route, options);
export const remove = <T>(route: string, options?: RequestOptions) => json<T>("DELETE", route, options);

/** The error as a problem document, whatever it is: one of ours keeps its text. */
export function asProblem(error: unknown): ProblemDocument {
  if (error instanceof ApiError) return error.problem;
  const detail = error instanceof Error ? error.message : String(error);
  return { type: "about:blank", title: "the page failed", status: 0, code: "page_error" as ProblemDocument["code"], detail };
}
