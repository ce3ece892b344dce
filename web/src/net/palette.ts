import type { StepStatus } from "./step-state";

export interface Tint {
  readonly fill: string;
  readonly line: string;
}

/** The colours of the style sheet, as a canvas needs them. */
export interface Palette {
  readonly background: string;
  readonly text: string;
  readonly muted: string;
  readonly edge: string;
  readonly rule: string;
  readonly soft: string;
  readonly accent: string;
  /** Text on a full colour. */
  readonly onColour: string;
  readonly plain: Tint;
  readonly statuses: Readonly<Record<StepStatus, Tint>>;
  readonly font: string;
}

/** The colour of a status in the style sheet. */
export const STATUS_TONES: Readonly<Record<StepStatus, string>> = {
  completed: "completed",
  failed: "failed",
  running: "running",
  ready: "idle",
  waiting: "waiting",
  not_admitted: "waiting",
  cancelled: "idle",
  skipped: "idle",
};

/**
 * Reads the colours where `element` is. A custom property is only text: what it comes to in this theme says an
 * element that has it as its colour.
 */
export function readPalette(element: HTMLElement): Palette {
  const probe = document.createElement("span");
  probe.hidden = true;
  element.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const tints = Object.entries(STATUS_TONES).map(([status, tone]) => [
    status,
    { fill: colour(`${tone}-soft`), line: colour(tone) },
  ]);
  const palette: Palette = {
    background: colour("sunken"),
    text: colour("text"),
    muted: colour("muted"),
    edge: colour("edge"),
    rule: colour("line"),
    soft: colour("idle-soft"),
    accent: colour("accent"),
    onColour: colour("on-accent"),
    plain: { fill: colour("surface"), line: colour("edge") },
    statuses: Object.fromEntries(tints) as Record<StepStatus, Tint>,
    font: getComputedStyle(element).fontFamily,
  };
  probe.remove();
  return palette;
}
