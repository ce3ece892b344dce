/** Short messages about what was done, in a polite live region. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Icon } from "../view/icon";

interface Toast {
  id: number;
  text: ComponentChildren;
  tone: "good" | "bad";
}

const toasts = signal<Toast[]>([]);
let last = 0;

/** It goes away by itself after some seconds; one about a failure stays until it is closed. */
export function toast(text: ComponentChildren, tone: "good" | "bad" = "good"): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-3), { id, text, tone }];
  if (tone === "good") setTimeout(() => dismiss(id), 6_000);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((item) => item.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((item) => (
        <div class={`toast ${item.tone === "bad" ? "bad" : ""}`} key={item.id}>
          <div class="grow">{item.text}</div>
          <button type="button" class="button small bare icon" aria-label="Close the message" onClick={() => dismiss(item.id)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
