/** A button that opens a list of actions or choices below itself. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

interface Props {
  label: string;
  class?: string;
  button: ComponentChildren;
  /** Drawn while the menu is open; `close` ends it. */
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, class: extra, button, children }: Props) {
  const [open, setOpen] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = () => list.current?.hidePopover();
  useEffect(() => {
    if (!open) return;
    const box = anchor.current!.getBoundingClientRect();
    const element = list.current!;
    element.style.top = `${box.bottom + 6}px`;
    const left = Math.min(box.right - element.offsetWidth, innerWidth - element.offsetWidth - 8);
    element.style.left = `${Math.max(8, left)}px`;
    element.querySelector<HTMLElement>("a, button, input, select")?.focus();
  }, [open]);
  const move = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const items = [...list.current!.querySelectorAll<HTMLElement>(".menu-item")];
    const index = items.indexOf(document.activeElement as HTMLElement);
    items[(index + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
    event.preventDefault();
  };
  return (
    <>
      <button type="button" ref={anchor} class={extra ?? "button"} aria-label={label} title={label} aria-expanded={open} aria-haspopup="true" popovertarget={id}>
        {button}
      </button>
      <div
        id={id}
        ref={list}
        class="popover"
        popover="auto"
        aria-label={label}
        role="group"
        onToggle={(event) => setOpen((event as unknown as ToggleEvent).newState === "open")}
        onKeyDown={move}
        onClick={(event) => (event.target as Element).closest("a") && close()}
      >
        {open && children(close)}
      </div>
    </>
  );
}
