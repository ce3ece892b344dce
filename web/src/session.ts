/** Who uses the page, and what they may do. */
import { computed, signal } from "@preact/signals";
import { ApiError, get, post, remove, whenUnauthenticated } from "./api/client";
import type { CallerAnswer } from "./api/types";
import { href, navigate, path, place } from "./router";

export const caller = signal<CallerAnswer | null>(null);
export const signedOut = signal(false);
const RANKS: CallerAnswer["role"][] = ["viewer", "operator", "author", "admin"];

/** Whether the role has the rights of this one. */
export function may(role: "viewer" | "operator" | "author" | "admin"): boolean {
  const own = caller.value?.role;
  return own !== undefined && RANKS.indexOf(own) >= RANKS.indexOf(role);
}
export const isAdmin = computed(() => may("admin"));

/** Asks who this is. A login link (`/login?code=…`) is used up on the way. */
export async function begin(): Promise<void> {
  whenUnauthenticated(() => {
    caller.value = null;
    signedOut.value = true;
    if (path.value !== "/login") {
      const back = location.pathname + location.search;
      navigate(href("/login", { next: back === href("/") ? null : back }), "replace");
    }
  });
  const code = path.value === "/login" ? place.value.query.get("code") : null;
  if (code) {
    try {
      await signIn({ code });
      navigate(safeNext(), "replace");
      return;
    } catch (error) {
      // A used link of who is signed in already does no harm: whether they are shows below.
      if (!(error instanceof ApiError)) throw error;
    }
  }
  try {
    caller.value = await get<CallerAnswer>("me");
    if (path.value === "/login") navigate(safeNext(), "replace");
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "unauthenticated") throw error;
  }
}

/** Where to go after the login: only into this page, whatever the link says. */
export function safeNext(): string {
  const next = place.value.query.get("next") ?? "";
  return next.startsWith(href("/")) && !next.startsWith("//") && !next.includes("\\") ? next : href("/");
}

export async function signIn(by: { token: string } | { code: string }): Promise<void> {
  await post("session", { body: by });
  caller.value = await get<CallerAnswer>("me");
  signedOut.value = false;
}

export async function signOut(): Promise<void> {
  await remove("session");
  // Everything that was read under the old rights goes with the document.
  location.assign(href("/login"));
}
