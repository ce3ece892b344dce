import type { NetAnswer, NetBox, NetRoute } from "../api/types";
import { drawIcon } from "./icons";
import type { Palette, Tint } from "./palette";
import { arrowHead, drawnPoints, traceRoute, type Point } from "./route-path";
import { arcKey, statusWord, type NetState, type StepState } from "./step-state";
import { overlaps, shownPart, type Size, type View } from "./view";

/** From this scale on, cards have their text and can be pressed. */
export const READABLE = 0.45;
const FONT_SIZES: Readonly<Record<string, number>> = {
  name: 14, desc: 11.5, note: 11, badge: 11.5, detail: 11, task: 12, kind: 11, mark: 11,
};
const CORNER = 8;
const GUARD = 11;

export interface Scene {
  readonly net: NetAnswer;
  readonly state: NetState | null;
  readonly selected: string | null;
  readonly hovered: string | null;
}

interface Rectangle extends Size {
  readonly x: number;
  readonly y: number;
}

interface ShownRoute {
  readonly route: NetRoute;
  readonly index: number;
  readonly taken: number;
}

/** Draws a net on a canvas. Lines are made once for each net; a frame draws only what the window shows. */
export class Painter {
  /** Each as far as no earlier route has drawn it. */
  private lines: Path2D[] = [];
  /** Each to its end: what was taken must not end on a line that was not. */
  private wholeLines: Path2D[] = [];
  private heads: (Path2D | null)[] = [];
  private bounds: Rectangle[] = [];
  private arcs: string[] = [];
  private prepared: NetAnswer | null = null;
  /** What the context has: to set a font, even the same, costs as much as to draw with it. */
  private fontSet = "";

  constructor(
    private readonly context: CanvasRenderingContext2D,
    public palette: Palette,
  ) {}

  paint(scene: Scene, view: View, window: Size, ratio: number): void {
    if (this.prepared !== scene.net) this.prepare(scene.net);
    const { context } = this;
    // A canvas with a new size has forgotten its font.
    this.fontSet = "";
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, window.width, window.height);
    context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
    this.routes(scene, view, window);
    const part = shownPart(view, window);
    const taller = { ...part, y: part.y - 20, height: part.height + 40 };
    for (const box of scene.net.boxes) {
      if (!overlaps(box, taller)) continue;
      this.box(box, scene, view.scale);
    }
  }

  private prepare(net: NetAnswer): void {
    this.prepared = net;
    this.bounds = net.routes.map((route) => boundsOf(route.points));
    this.arcs = net.routes.map((route) => arcKey(route.source, route.number));
    this.lines = net.routes.map((route) => lineThrough(drawnPoints(route)));
    this.wholeLines = net.routes.map((route) => lineThrough(route.points));
    this.heads = net.routes.map((route) => {
      const corners = arrowHead(route.points);
      if (!corners) return null;
      const path = new Path2D();
      path.moveTo(...corners[0]);
      path.lineTo(...corners[1]);
      path.lineTo(...corners[2]);
      path.closePath();
      return path;
    });
  }

  private routes(scene: Scene, view: View, window: Size): void {
    const part = shownPart(view, window);
    const untaken: ShownRoute[] = [];
    const used: ShownRoute[] = [];
    scene.net.routes.forEach((route, index) => {
      if (!touches(this.bounds[index]!, part)) return;
      const taken = scene.state?.taken.get(this.arcs[index]!) ?? 0;
      (taken ? used : untaken).push({ route, index, taken });
    });
    // What was taken lies above what was not, and labels above all lines.
    const shown = untaken.concat(used);
    for (const { route, index, taken } of shown) this.route(route, index, taken, scene, view.scale);
    if (view.scale >= READABLE)
      for (const { route, taken } of shown) if (route.label) this.label(route, taken, scene.state !== null);
    this.context.globalAlpha = 1;
  }

  private colourOf(route: NetRoute, taken: number): string {
    const { palette } = this;
    return route.failure ? palette.statuses.failed.line : taken ? palette.text : palette.edge;
  }

  private route(route: NetRoute, index: number, taken: number, scene: Scene, scale: number): void {
    const { context } = this;
    const selected = scene.selected ?? scene.hovered;
    const faded = scene.state !== null && !taken;
    const near = selected !== null && (route.source === selected || route.target === selected);
    const colour = this.colourOf(route, taken);
    context.globalAlpha = faded && !near ? 0.55 : 1;
    context.strokeStyle = colour;
    context.lineWidth = Math.max(taken ? 2.2 : 1.4, 0.8 / scale);
    context.setLineDash(faded ? [2, 4] : route.failure ? [5, 4] : []);
    context.stroke((taken ? this.wholeLines : this.lines)[index]!);
    context.setLineDash([]);
    const head = this.heads[index];
    if (head && (taken || !route.merges)) {
      context.fillStyle = colour;
      context.fill(head);
    }
  }

  /** What stands on a route: its number in the router, after what, its guard, how often it was taken. */
  private label(route: NetRoute, taken: number, happened: boolean): void {
    const { context, palette } = this;
    const colour = this.colourOf(route, taken);
    context.globalAlpha = happened && !taken ? 0.75 : 1;
    const label = route.label!;
    const middle = label.y + label.height / 2;
    const count = taken > 1 ? `${taken}×` : "";
    this.font(GUARD, true);
    const extra = count ? context.measureText(count).width + 8 : 0;
    context.fillStyle = palette.background;
    rounded(context, label.x, label.y, label.width + extra, label.height, 4);
    context.fill();
    let x = label.x;
    if (route.order) {
      const inclusive = route.order === "+";
      const centre = x + 8 + (label.lines.length ? 2 : 0);
      context.beginPath();
      context.arc(centre, middle, 7.5, 0, 2 * Math.PI);
      context.fillStyle = inclusive ? palette.accent : palette.plain.fill;
      context.fill();
      context.lineWidth = 1;
      context.strokeStyle = inclusive ? palette.accent : colour;
      context.stroke();
      this.font(10, true);
      this.text(route.order, centre, middle + 3.6, inclusive ? palette.onColour : colour, 14, "center");
      x += 20;
    }
    if (route.mark) {
      drawIcon(context, route.mark, x + 6 + (route.order ? 2 : 0), middle, palette.statuses[route.mark === "done" ? "completed" : "failed"].line);
      x += 16;
    }
    if (label.lines.length) x += 4;
    this.font(GUARD, false);
    label.lines.forEach((line, number) => {
      const base = middle + (number - (label.lines.length - 1) / 2) * 14 + GUARD * 0.35;
      this.text(line, x, base, route.failure ? palette.statuses.failed.line : palette.muted, label.x + label.width - x);
    });
    if (count) {
      this.font(GUARD, true);
      this.text(count, label.x + label.width + extra - 4, middle + GUARD * 0.35, colour, extra, "right");
    }
  }

  private box(box: NetBox, scene: Scene, scale: number): void {
    const { context, palette } = this;
    const state = scene.state?.steps.get(box.step);
    const tint = state ? palette.statuses[state.status] : palette.plain;
    const faded = scene.state !== null && !state;
    // Not saved and restored: that would set the font again for each card.
    context.translate(box.x, box.y);
    const width = box.width - box.stack;
    const height = box.height - box.stack;
    if (scene.selected === box.step) {
      context.strokeStyle = palette.accent;
      context.lineWidth = Math.max(3, 2 / scale);
      rounded(context, -5, -5, width + 10 + box.stack, height + 10 + box.stack, CORNER + 5);
      context.stroke();
    }
    this.frame(box, tint, width, height, scale, state?.status === "not_admitted");
    context.globalAlpha = faded ? 0.62 : 1;
    if (scale >= READABLE) this.content(box, tint, width);
    else this.nameAlone(box, width, height, scale);
    context.globalAlpha = 1;
    if (scene.hovered === box.step) {
      context.strokeStyle = palette.accent;
      context.lineWidth = 1.5;
      rounded(context, 0, 0, width, height, CORNER);
      context.stroke();
    }
    if (state && scale >= READABLE) this.status(state, tint, width, height);
    if (state?.tokens) this.tokens(state.tokens, scale);
    context.translate(-box.x, -box.y);
  }

  private frame(box: NetBox, tint: Tint, width: number, height: number, scale: number, dashed: boolean): void {
    const { context } = this;
    context.fillStyle = tint.fill;
    context.strokeStyle = tint.line;
    context.lineWidth = Math.max(1.4, 1 / scale);
    if (box.stack) {
      rounded(context, box.stack, box.stack, width, height, CORNER);
      context.fill();
      context.stroke();
    }
    rounded(context, 0, 0, width, height, CORNER);
    context.fill();
    context.setLineDash(dashed ? [4, 3] : []);
    context.stroke();
    context.setLineDash([]);
  }

  private content(box: NetBox, tint: Tint, width: number): void {
    const { context, palette } = this;
    if (box.rule !== null) {
      context.strokeStyle = tint.line;
      context.lineWidth = 0.6;
      context.beginPath();
      context.moveTo(0, box.rule);
      context.lineTo(width, box.rule);
      context.stroke();
    }
    const first = box.dots[0];
    const last = box.dots[box.dots.length - 1];
    context.fillStyle = palette.muted;
    if (first !== undefined && last !== undefined && last > first) context.fillRect(18.75, first, 1.5, last - first);
    for (const y of box.dots) {
      context.beginPath();
      context.arc(19.5, y, 3, 0, 2 * Math.PI);
      context.fill();
    }
    for (const icon of box.icons) drawIcon(context, icon.kind, icon.x, icon.y, icon.kind === "break" ? palette.muted : palette.accent);
    let nameEnd = width - 10;
    for (const pill of box.pills) {
      nameEnd = Math.min(nameEnd, pill.x - 4);
      this.pill(pill.x, pill.y - 8, pill.width, pill.text, palette.soft, palette.muted);
    }
    box.texts.forEach((text, index) => {
      // Text was measured with another font: what is wider here is set narrower, not over its neighbour.
      const next = box.texts[index + 1];
      const limit = next && Math.abs(next.y - text.y) < 3 && next.x > text.x ? next.x - 6 : text.style === "name" ? nameEnd : width - 8;
      this.font(FONT_SIZES[text.style] ?? 11, text.style === "name");
      const strong = text.style === "name" || text.style === "task" || text.style === "badge";
      this.text(text.text, text.x, text.y, strong ? palette.text : palette.muted, limit - text.x);
    });
  }

  /** Far away, the name is all that can be read, as large as the card allows. */
  private nameAlone(box: NetBox, width: number, height: number, scale: number): void {
    const size = Math.min(height * 0.5, 11 / scale, 40);
    if (size * scale < 6) return;
    this.font(size, true);
    this.text(box.step, width / 2, height / 2 + size * 0.35, this.palette.text, width - 12, "center");
  }

  private status(state: StepState, tint: Tint, width: number, height: number): void {
    const { context, palette } = this;
    const times = state.runs > 1 ? ` ${state.runs}×` : "";
    const word = statusWord(state.status) + times;
    this.font(10, true);
    const length = Math.min(context.measureText(word).width + 28, width - 12);
    const x = width - length - 8;
    this.pill(x, height - 8, length, "", tint.line, palette.onColour);
    drawIcon(context, state.status, x + 11, height, palette.onColour, 0.72);
    this.font(10, true);
    this.text(word, x + 20, height + 3.5, palette.onColour, length - 27);
  }

  private tokens(count: number, scale: number): void {
    const { context, palette } = this;
    const radius = scale >= READABLE ? 9 : Math.min(9, 5 / scale);
    context.beginPath();
    context.arc(4, 0, radius, 0, 2 * Math.PI);
    context.fillStyle = palette.statuses.waiting.line;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = palette.background;
    context.stroke();
    if (scale < READABLE) return;
    this.font(10, true);
    this.text(count > 99 ? "99+" : String(count), 4, 3.5, palette.onColour, 15, "center");
  }

  private pill(x: number, y: number, width: number, word: string, fill: string, ink: string): void {
    const { context } = this;
    context.fillStyle = fill;
    rounded(context, x, y, width, 16, 8);
    context.fill();
    if (!word) return;
    this.font(10, true);
    this.text(word, x + width / 2, y + 11.5, ink, width - 8, "center");
  }

  private font(size: number, bold: boolean): void {
    const font = `${bold ? "600 " : ""}${size}px ${this.palette.font}`;
    if (font !== this.fontSet) this.context.font = this.fontSet = font;
  }

  private text(text: string, x: number, y: number, fill: string, room: number, align: CanvasTextAlign = "left"): void {
    this.context.fillStyle = fill;
    this.context.textAlign = align;
    this.context.fillText(text, x, y, Math.max(room, 4));
  }
}

function rounded(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, radius: number): void {
  context.beginPath();
  context.roundRect(x, y, Math.max(width, 0), Math.max(height, 0), radius);
}

function lineThrough(points: readonly Point[]): Path2D {
  const path = new Path2D();
  traceRoute(points, path);
  return path;
}

function boundsOf(points: readonly Point[]): Rectangle {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const x = Math.min(...xs);
  const y = Math.min(...ys);
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

/** As `overlaps`, and a straight line, which has no width, touches, too. */
function touches(bounds: Rectangle, part: Rectangle): boolean {
  return (
    bounds.x <= part.x + part.width && bounds.x + bounds.width >= part.x &&
    bounds.y <= part.y + part.height && bounds.y + bounds.height >= part.y
  );
}
