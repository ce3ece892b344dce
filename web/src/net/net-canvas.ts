import type { NetAnswer, NetBox } from "../api/types";
import { Painter, READABLE, type Scene } from "./painter";
import { readPalette } from "./palette";
import { stateSentence, type NetState } from "./step-state";
import { fitted, overlaps, panned, revealed, shownPart, TOP_MARGIN, viewOfText, viewText, zoomed, type Size, type View } from "./view";

const DRAG = 4;

/** What is chosen at first, and who hears of a choice. A view is a text of `viewText`, or null for the first one. */
interface NetChoice {
  readonly selected: string | null;
  readonly view: string | null;
  readonly onSelect: (step: string) => void;
  readonly onView: (view: string | null) => void;
}

/**
 * A net in an element: one canvas, and above it a button for every readable card in the window, for keyboards and
 * screen readers. Everything is drawn at most once a frame.
 */
export class NetCanvas {
  private readonly canvas = document.createElement("canvas");
  private readonly layer = document.createElement("div");
  private readonly buttons = new Map<string, HTMLButtonElement>();
  /** With which view each button was placed. */
  private readonly placed = new WeakMap<HTMLButtonElement, View>();
  private readonly painter: Painter;
  private readonly stop = new AbortController();
  private readonly observer: ResizeObserver;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private size: Size = { width: 0, height: 0 };
  private view: View | null = null;
  /** Where a person moved the picture to: then a new size of the window leaves it where it is. */
  private chosen: string | null;
  private dragged = false;
  private frame = 0;
  private scene: Scene;
  private boxes: Map<string, NetBox>;
  private readonly select: (step: string) => void;
  private readonly report: (view: string | null) => void;

  constructor(
    private readonly element: HTMLElement,
    net: NetAnswer,
    { selected, view, onSelect, onView }: NetChoice,
  ) {
    this.scene = { net, state: null, selected, hovered: null };
    this.chosen = view;
    this.select = onSelect;
    this.report = onView;
    this.boxes = new Map(net.boxes.map((box) => [box.step, box]));
    this.canvas.setAttribute("aria-hidden", "true");
    this.layer.className = "net-cards";
    element.append(this.canvas, this.layer);
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.painter = new Painter(context, readPalette(element));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(element);
    this.listen();
    this.resize();
  }

  dispose(): void {
    this.stop.abort();
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    this.canvas.remove();
    this.layer.remove();
  }

  /** Another document: the view stays if it is one that a person chose. */
  setNet(net: NetAnswer): void {
    if (net === this.scene.net) return;
    this.scene = { ...this.scene, net };
    this.boxes = new Map(net.boxes.map((box) => [box.step, box]));
    // A copy: cards of another net are elsewhere in the same view.
    this.view = this.chosen !== null && this.view ? { ...this.view } : null;
    this.ask();
  }

  setState(state: NetState | null): void {
    this.scene = { ...this.scene, state };
    this.ask();
  }

  setSelected(step: string | null): void {
    if (step === this.scene.selected) return;
    this.scene = { ...this.scene, selected: step };
    const box = step === null ? undefined : this.boxes.get(step);
    if (box) this.reveal(box);
    this.ask();
  }

  /** The view as a text of `viewText`; null is the first one. What this said itself changes nothing. */
  setView(text: string | null): void {
    if (text === this.chosen) return;
    this.chosen = text;
    this.view = null;
    this.ask();
  }

  /** The theme has changed. */
  restyle(): void {
    this.painter.palette = readPalette(this.element);
    this.ask();
  }

  fit(): void {
    this.setView(null);
    this.report(null);
  }

  zoom(factor: number, at = { x: this.size.width / 2, y: this.size.height / 2 }): void {
    const view = this.present();
    if (view) this.change(zoomed(view, factor, at));
  }

  private change(view: View): void {
    this.view = view;
    this.chosen = viewText(view, this.size);
    this.report(this.chosen);
    this.ask();
  }

  private reveal(box: NetBox): void {
    if (!this.view || !this.size.width) return;
    const view = revealed(this.view, box, this.size);
    if (view !== this.view) this.change(view);
  }

  private pan(dx: number, dy: number): void {
    const view = this.present();
    if (view) this.change(panned(view, dx, dy, this.scene.net, this.size));
  }

  /** Also before the frame that draws it: what a person does between the two counts. Null while nothing is to be seen. */
  private present(): View | null {
    if (!this.size.width || !this.size.height) return null;
    return (this.view ??= this.firstView());
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (width === this.size.width && height === this.size.height) return;
    this.size = { width, height };
    const ratio = devicePixelRatio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    if (this.chosen === null) this.view = null;
    // At once: a canvas with a new size is empty, and a frame without a picture would flicker.
    this.paint();
  }

  private ask(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const view = this.present();
    if (!view) return;
    this.painter.paint(this.scene, view, this.size, devicePixelRatio);
    this.placeButtons(view);
  }

  /** The one that was chosen; else all of it, or where it begins if all would be too small to read. */
  private firstView(): View {
    const chosen = viewOfText(this.chosen, this.scene.net, this.size);
    if (chosen) return chosen;
    this.chosen = null;
    const whole = fitted(this.scene.net, this.size);
    const entry = this.boxes.get(this.scene.selected ?? this.scene.net.entry);
    return whole.scale >= READABLE || !entry ? whole : revealedStart(entry, this.scene.net, this.size);
  }

  private placeButtons(view: View): void {
    const seen = new Set<string>();
    const part = shownPart(view, this.size);
    if (view.scale >= READABLE)
      for (const box of this.scene.net.boxes) {
        if (!overlaps(box, part)) continue;
        seen.add(box.step);
        this.placeButton(box, view);
      }
    for (const [step, button] of this.buttons) {
      // A card with the focus stays: who goes on with the keyboard would otherwise be at the top of the page.
      if (seen.has(step) || button === document.activeElement) continue;
      button.remove();
      this.buttons.delete(step);
    }
  }

  private placeButton(box: NetBox, view: View): void {
    let button = this.buttons.get(box.step);
    if (!button) {
      button = document.createElement("button");
      button.type = "button";
      button.className = "net-card";
      button.dataset.step = box.step;
      this.buttons.set(box.step, button);
      this.layer.append(button);
    }
    const label = this.scene.state ? `${box.step}, ${stateSentence(this.scene.state.steps.get(box.step))}` : box.step;
    if (button.ariaLabel !== label) button.ariaLabel = label;
    const pressed = String(box.step === this.scene.selected);
    if (button.ariaPressed !== pressed) button.ariaPressed = pressed;
    // While only the state changes, cards stay where they are.
    if (this.placed.get(button) === view) return;
    this.placed.set(button, view);
    button.style.width = `${box.width * view.scale}px`;
    button.style.height = `${box.height * view.scale}px`;
    button.style.transform = `translate(${box.x * view.scale + view.x}px,${box.y * view.scale + view.y}px)`;
  }

  private boxAt(point: { x: number; y: number }): NetBox | null {
    const { view } = this;
    if (!view) return null;
    const x = (point.x - view.x) / view.scale;
    const y = (point.y - view.y) / view.scale;
    return this.scene.net.boxes.find((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height) ?? null;
  }

  private place(event: MouseEvent): { x: number; y: number } {
    const bounds = this.element.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  }

  private listen(): void {
    const { element } = this;
    const options = { signal: this.stop.signal };
    element.addEventListener("wheel", (event) => this.wheel(event), { ...options, passive: false });
    element.addEventListener("pointerdown", (event) => this.pointerDown(event), options);
    element.addEventListener("pointermove", (event) => this.pointerMove(event), options);
    for (const name of ["pointerup", "pointercancel"] as const)
      element.addEventListener(name, (event) => this.pointers.delete(event.pointerId), options);
    element.addEventListener("pointerleave", () => this.hover(null), options);
    element.addEventListener("click", (event) => this.click(event), options);
    element.addEventListener("keydown", (event) => this.key(event), options);
    this.layer.addEventListener("focusin", (event) => this.focused(event), options);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle(), options);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 16 : event.deltaY;
    if (event.shiftKey) this.pan(-(event.deltaX || pixels), 0);
    else this.zoom(Math.exp(-pixels * (event.ctrlKey ? 0.01 : 0.0018)), this.place(event));
  }

  private pointerDown(event: PointerEvent): void {
    if (event.button) return;
    this.pointers.set(event.pointerId, this.place(event));
    this.dragged = false;
  }

  private pointerMove(event: PointerEvent): void {
    const point = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.hover(this.boxAt(point)?.step ?? null);
      return;
    }
    const dx = point.x - before.x;
    const dy = point.y - before.y;
    if (!this.dragged && Math.abs(dx) + Math.abs(dy) < DRAG && this.pointers.size === 1) return;
    if (!this.dragged) {
      this.dragged = true;
      this.element.setPointerCapture(event.pointerId);
    }
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, point);
    if (other) this.pinch(before, point, other);
    else this.pan(dx, dy);
  }

  private pinch(before: { x: number; y: number }, now: { x: number; y: number }, other: { x: number; y: number }): void {
    const apart = (point: { x: number; y: number }) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
    this.zoom(apart(now) / apart(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
  }

  private hover(step: string | null): void {
    if (step === this.scene.hovered) return;
    this.scene = { ...this.scene, hovered: step };
    this.element.classList.toggle("net-over-card", step !== null);
    this.ask();
  }

  private click(event: MouseEvent): void {
    if (this.dragged) {
      this.dragged = false;
      return;
    }
    const pressed = (event.target as Element).closest<HTMLElement>(".net-card");
    const step = pressed?.dataset.step ?? this.boxAt(this.place(event))?.step;
    if (step) this.select(step);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = (event.target as Element).closest<HTMLElement>(".net-card")?.dataset.step;
    const arrow = ARROWS[event.key];
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (arrow && from) this.focusNeighbour(from, arrow);
    else if (arrow) this.pan(-arrow[0] * 60, -arrow[1] * 60);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private focused(event: FocusEvent): void {
    const step = (event.target as HTMLElement).dataset.step;
    const box = step === undefined ? undefined : this.boxes.get(step);
    if (box) this.reveal(box);
  }

  private focusNeighbour(from: string, [dx, dy]: readonly [number, number]): void {
    const start = this.boxes.get(from);
    if (!start || !this.view) return;
    const next = nearest(start, this.scene.net.boxes, dx, dy);
    if (!next) return;
    this.reveal(next);
    this.paint();
    this.buttons.get(next.step)?.focus();
  }
}

const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The next card in a direction: what is straight ahead counts more than what is beside. */
export function nearest(from: NetBox, boxes: readonly NetBox[], dx: number, dy: number): NetBox | null {
  let best: NetBox | null = null;
  let least = Infinity;
  for (const box of boxes) {
    const x = box.x + box.width / 2 - (from.x + from.width / 2);
    const y = box.y + box.height / 2 - (from.y + from.height / 2);
    const ahead = x * dx + y * dy;
    const beside = Math.abs(x * dy) + Math.abs(y * dx);
    if (box === from || ahead <= 1) continue;
    if (ahead + 2 * beside < least) {
      least = ahead + 2 * beside;
      best = box;
    }
  }
  return best;
}

/** Readable, with this card at the top in the middle; a picture that is narrower stays in the middle. */
function revealedStart(box: NetBox, picture: Size, window: Size): View {
  const scale = Math.max(READABLE, Math.min(0.8, (window.width - 48) / picture.width));
  return { scale, x: window.width / 2 - (box.x + box.width / 2) * scale, y: TOP_MARGIN - box.y * scale };
}
