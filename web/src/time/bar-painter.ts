import type { RunBar } from "../api/types";
import { duration } from "../format/time";
import { drawIcon } from "../net/icons";
import type { Palette } from "../net/palette";
import type { StepStatus } from "../net/step-state";
import { loopText, type ShownRun, type TimeRow } from "./bars";
import type { FoldedScale } from "./scale";

export const ROW = 28;
export const AXIS = 24;

/** Which part of the folded time is shown, and in how many pixels. */
export interface TimeWindow {
  readonly from: number;
  readonly to: number;
  readonly width: number;
}

export interface TimeScene {
  readonly rows: readonly TimeRow[];
  readonly first: number;
  readonly end: number;
  /** How far the rows are scrolled. */
  readonly top: number;
  readonly scale: FoldedScale;
  readonly window: TimeWindow;
  /** When the execution is looked at. */
  readonly now: number;
  readonly selected: string | null;
}

export function pixelOf(scene: { scale: FoldedScale; window: TimeWindow }, time: number): number {
  const { from, to, width } = scene.window;
  return ((scene.scale.folded(time) - from) / (to - from)) * width;
}

/** Draws the bars of the rows in view, the axis above them, and the moment that is looked at. */
export class BarPainter {
  constructor(
    private readonly context: CanvasRenderingContext2D,
    public palette: Palette,
  ) {}

  paint(scene: TimeScene, height: number, ratio: number): void {
    const { context } = this;
    const { width } = scene.window;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.grid(scene, height);
    this.cursor(scene, height);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height - AXIS);
    context.clip();
    for (let index = scene.first; index < scene.end; index++)
      this.row(scene.rows[index]!, AXIS + index * ROW - scene.top, scene);
    context.restore();
  }

  private grid(scene: TimeScene, height: number): void {
    const { context, palette } = this;
    const { window, scale } = scene;
    context.font = `11px ${palette.font}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    let free = -Infinity;
    for (const tick of scale.ticks(window.from, window.to, window.width / 90)) {
      const x = Math.round(pixelOf(scene, tick)) + 0.5;
      context.strokeStyle = palette.rule;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x, AXIS - 5);
      context.lineTo(x, height);
      context.stroke();
      const text = tick === scale.begin ? "0" : `+${duration((tick - scale.begin) / 1_000)}`;
      const length = context.measureText(text).width;
      if (x < free || x + length + 6 > window.width) continue;
      context.fillStyle = palette.muted;
      context.fillText(text, x + 3, AXIS / 2);
      free = x + length + 14;
    }
    for (const fold of scale.folds) this.fold(fold, scene, height);
  }

  /** An idle stretch: a narrow hatched band that says how long it is. */
  private fold(fold: FoldedScale["folds"][number], scene: TimeScene, height: number): void {
    const { context, palette } = this;
    const left = pixelOf(scene, fold.begin);
    const right = pixelOf(scene, fold.end);
    if (right < 0 || left > scene.window.width) return;
    context.fillStyle = palette.soft;
    context.fillRect(left, AXIS, right - left, height - AXIS);
    context.save();
    context.beginPath();
    context.rect(left, AXIS, right - left, height - AXIS);
    context.clip();
    context.strokeStyle = palette.rule;
    context.lineWidth = 1;
    context.beginPath();
    for (let x = left - height; x < right; x += 7) {
      context.moveTo(x, height);
      context.lineTo(x + height, 0);
    }
    context.stroke();
    context.restore();
    const text = `⟨${duration((fold.end - fold.begin) / 1_000)} idle⟩`;
    const length = context.measureText(text).width;
    const x = Math.max(2, Math.min(scene.window.width - length - 2, (left + right - length) / 2));
    context.fillStyle = palette.plain.fill;
    context.fillRect(x - 3, 2, length + 6, AXIS - 4);
    context.fillStyle = palette.muted;
    context.fillText(text, x, AXIS / 2);
  }

  private row(row: TimeRow, y: number, scene: TimeScene): void {
    switch (row.kind) {
      case "step":
      case "inner":
        this.runs(row.runs, y, scene);
        break;
      case "run":
        this.runs([row.run], y, scene);
        break;
      case "child": {
        const { child } = row;
        const status = child.status as StepStatus;
        const x = pixelOf(scene, child.begin);
        const end = pixelOf(scene, child.end ?? scene.now);
        this.bar(x, end, y + 9, 10, status);
        break;
      }
    }
  }

  private runs(runs: readonly ShownRun[], y: number, scene: TimeScene): void {
    let drawn = -Infinity;
    let last: StepStatus | null = null;
    let end = 0;
    for (const run of runs) {
      const x = pixelOf(scene, run.bar.begin);
      const right = pixelOf(scene, run.end ?? scene.now);
      end = Math.max(end, right);
      // Thousands of runs in a row: what would be on the same pixel in the same colour is not drawn again.
      if (right - drawn < 0.5 && run.status === last) continue;
      this.run(run, x, right, y, scene);
      drawn = right;
      last = run.status;
    }
    const only = runs.length === 1 ? runs[0]! : null;
    this.label(only ? runLabel(only, scene.now) : `${runs.length} runs`, only?.status ?? worst(runs), pixelOf(scene, runs[0]?.bar.begin ?? 0), end, y, scene);
  }

  private run(run: ShownRun, x: number, right: number, y: number, scene: TimeScene): void {
    const { context, palette } = this;
    const { bar } = run;
    const tint = palette.statuses[run.status];
    if (bar.loop?.heat) {
      this.bar(x, right, y + 6, 16, run.status, true);
      this.heat(bar, x, right, y, scene);
      return;
    }
    this.bar(x, right, y + 7, 14, run.status);
    context.fillStyle = palette.plain.fill;
    for (const wait of bar.waits) {
      if (wait.begin > scene.now) break;
      const from = Math.max(x + 1, pixelOf(scene, wait.begin));
      const to = Math.min(right - 1, pixelOf(scene, Math.min(wait.end ?? scene.now, scene.now)));
      if (to - from < 1) continue;
      // Nobody worked on it: only its outline is left.
      context.fillStyle = wait.reason === "ready" ? palette.soft : tint.fill;
      context.fillRect(from, y + 8, to - from, 12);
    }
  }

  private heat(bar: RunBar, x: number, right: number, y: number, scene: TimeScene): void {
    const { context, palette } = this;
    const { heat } = bar.loop!;
    if (!heat) return;
    const most = Math.max(1, ...heat.succeeded.map((count, index) => count + (heat.failed[index] ?? 0)));
    heat.succeeded.forEach((succeeded, index) => {
      const failed = heat.failed[index] ?? 0;
      const begin = heat.begin + index * heat.bucket;
      if (succeeded + failed === 0 || begin > scene.now) return;
      const from = Math.max(x, pixelOf(scene, begin));
      const to = Math.min(right, pixelOf(scene, begin + heat.bucket));
      const width = Math.max(to - from, 1);
      context.globalAlpha = 0.35 + 0.65 * ((succeeded + failed) / most);
      const height = Math.round((14 * failed) / (succeeded + failed));
      context.fillStyle = palette.statuses.completed.line;
      context.fillRect(from, y + 7, width, 14 - height);
      context.globalAlpha = 1;
      context.fillStyle = palette.statuses.failed.line;
      context.fillRect(from, y + 21 - height, width, height);
    });
    context.globalAlpha = 1;
  }

  private bar(x: number, right: number, y: number, height: number, status: StepStatus, hollow = false): void {
    const { context, palette } = this;
    const tint = palette.statuses[status] ?? palette.plain;
    const width = Math.max(right - x, 2.5);
    context.beginPath();
    context.roundRect(x, y, width, height, Math.min(3, width / 2));
    context.fillStyle = hollow ? tint.fill : tint.line;
    context.fill();
    if (width > 4) {
      context.lineWidth = 1;
      context.strokeStyle = tint.line;
      context.stroke();
    }
  }

  private label(text: string, status: StepStatus, x: number, end: number, y: number, scene: TimeScene): void {
    const { context, palette } = this;
    context.font = `11px ${palette.font}`;
    const length = context.measureText(text).width + 14;
    const { width } = scene.window;
    const room = width - end - 8;
    const start = room >= length ? end + 6 : x - length - 8;
    if (start < 0 || start > width) return;
    context.strokeStyle = palette.plain.fill;
    context.lineWidth = 3;
    context.textAlign = "left";
    context.strokeText(text, start + 14, y + 14.5);
    drawIcon(context, status, start + 5, y + 14, (palette.statuses[status] ?? palette.plain).line, 0.75);
    context.fillStyle = palette.muted;
    context.fillText(text, start + 14, y + 14.5);
  }

  private cursor(scene: TimeScene, height: number): void {
    const { context, palette } = this;
    const x = Math.round(pixelOf(scene, scene.now)) + 0.5;
    if (x < 0 || x > scene.window.width) return;
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, AXIS - 4);
    context.lineTo(x, height);
    context.stroke();
    context.fillStyle = palette.accent;
    context.beginPath();
    context.moveTo(x - 5, AXIS - 9);
    context.lineTo(x + 5, AXIS - 9);
    context.lineTo(x, AXIS - 2);
    context.fill();
  }
}

function runLabel(run: ShownRun, now: number): string {
  const { bar } = run;
  const parts = [duration(((run.end ?? now) - bar.begin) / 1_000)];
  if (bar.loop) parts.push(loopText(run));
  else if (bar.attempts > 1 && run.end !== null) parts.push(`${bar.attempts} attempts`);
  return parts.join(" · ");
}

const WORST: readonly StepStatus[] = ["running", "ready", "waiting", "failed", "cancelled", "skipped", "completed"];

export function worst(runs: readonly ShownRun[]): StepStatus {
  const statuses = new Set(runs.map((run) => run.status));
  return WORST.find((status) => statuses.has(status)) ?? "completed";
}
