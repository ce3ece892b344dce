/** Keys of the page. Off while somebody types, or a dialog is open. */
import { useLayoutEffect, useRef } from "preact/hooks";

type Keys = Record<string, (event: KeyboardEvent) => void>;

const layers: { current: Keys }[] = [];
let pendingKey = "";
let pendingTimer: ReturnType<typeof setTimeout> | undefined;

/** Keys by name: `j`, `/`, `?`, two after each other as `g e`, with control (or command) as `Ctrl-k`.
 *
 * The last component that asks for a key has it. Those with control also work while somebody types.
 */
export function useShortcuts(keys: Keys): void {
  const layer = useRef(keys);
  layer.current = keys;
  // Not after the next frame: a key that is pressed as soon as the page is there must not be lost.
  useLayoutEffect(() => {
    layers.push(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  const element = target instanceof Element ? (target.shadowRoot?.activeElement ?? target) : null;
  if (!(element instanceof HTMLElement)) return false;
  if (element instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(element.type);
  return element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement || element.isContentEditable;
}

function find(name: string): ((event: KeyboardEvent) => void) | undefined {
  for (const layer of layers.toReversed()) if (layer.current[name]) return layer.current[name];
  return undefined;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const withControl = event.ctrlKey || event.metaKey;
  if (document.querySelector("dialog[open]") || (!withControl && isTyping(event.composedPath()[0] ?? null))) return;
  const name = withControl ? `Ctrl-${event.key.toLowerCase()}` : event.key;
  const act = (pendingKey && find(`${pendingKey} ${name}`)) || find(name);
  clearTimeout(pendingTimer);
  pendingKey = "";
  if (act) {
    event.preventDefault();
    act(event);
  } else if (name.length === 1 && layers.some((layer) => Object.keys(layer.current).some((key) => key.startsWith(`${name} `)))) {
    pendingKey = name;
    pendingTimer = setTimeout(() => (pendingKey = ""), 1_000);
  }
});
