/** What a person has chosen for this browser. Kept in `localStorage`, and shared by all tabs. */
import { effect, signal, type Signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

/** A signal that is kept under `noetl.NAME`, and follows what other tabs write there. */
export function kept<T>(name: string, initial: T, check: (value: unknown) => value is T): Signal<T> {
  const key = `noetl.${name}`;
  const read = (text: string | null): T => {
    if (text === null) return initial;
    try {
      const value: unknown = typeof initial === "string" ? text : JSON.parse(text);
      return check(value) ? value : initial;
    } catch {
      return initial;
    }
  };
  const held = signal(read(localStorage.getItem(key)));
  let first = true;
  effect(() => {
    const value = held.value;
    if (first) first = false;
    else localStorage.setItem(key, typeof value === "string" ? value : JSON.stringify(value));
  });
  addEventListener("storage", (event) => {
    if (event.key === key) held.value = read(event.newValue);
  });
  return held;
}

function isTheme(value: unknown): value is Theme {
  return value === "system" || value === "light" || value === "dark";
}

function isZone(value: unknown): value is string {
  if (typeof value !== "string") return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: value });
    return true;
  } catch {
    return false;
  }
}

export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const theme = kept<Theme>("theme", "system", isTheme);
export const zone = kept<string>("zone", browserZone, isZone);

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});
