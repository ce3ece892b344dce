/** Status is shape, word and colour: each alone says it. */
import type { ComponentChildren } from "preact";

export type Tone = "running" | "completed" | "failed" | "waiting" | "idle";

const TONES: Record<string, Tone> = {
  running: "running",
  claimed: "running",
  ready: "idle",
  completed: "completed",
  done: "completed",
  failed: "failed",
  waiting: "waiting",
  suspended: "waiting",
  paused: "waiting",
  warning: "waiting",
  cancelled: "idle",
  skipped: "idle",
  not_admitted: "idle",
};

export function toneOf(status: string): Tone {
  return TONES[status] ?? "idle";
}

/** The shapes, on 16 × 16: filled disc with a tick, octagon with a cross, ring with a dot, two bars, a bar. */
export function StatusShape({ status, size = 16 }: { status: string; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
      {shapeOf(status)}
    </svg>
  );
}

function shapeOf(status: string): ComponentChildren {
  switch (status) {
    case "completed":
    case "done":
      return (<><circle cx="8" cy="8" r="6.1" /><path d="M5.2 8.3 7.3 10.4 11 6" /></>);
    case "failed":
      return (<><path d="M5.4 1.9h5.2l3.5 3.5v5.2l-3.5 3.5H5.4l-3.5-3.5V5.4z" /><path d="M6 6l4 4M10 6l-4 4" /></>);
    case "running":
    case "claimed":
      return (<><circle cx="8" cy="8" r="6.1" stroke-dasharray="9.6 3.2" /><circle cx="8" cy="8" r="2.4" fill="currentColor" stroke="none" /></>);
    case "waiting":
    case "suspended":
      return (<><path d="M4 2h8M4 14h8M5 2c0 3.6 6 4.8 6 8.4V14M11 2c0 3.6-6 4.8-6 8.4V14" stroke-width="1.5" /></>);
    case "paused":
      return (<><path d="M5.5 3.5v9M10.5 3.5v9" stroke-width="2.6" /></>);
    case "cancelled":
    case "skipped":
      return (<><circle cx="8" cy="8" r="6.1" /><path d="M4 12 12 4" /></>);
    case "warning":
      return (<><path d="M8 2 14.6 13.6H1.4z" stroke-width="1.6" /><path d="M8 6.6v3M8 11.6v.1" /></>);
    default:
      return <circle cx="8" cy="8" r="5.2" stroke-dasharray="2 2.6" />;
  }
}

export function Status({ status, word = status.replaceAll("_", " ") }: { status: string; word?: string }) {
  return (
    <span class={`status ${toneOf(status)}`}>
      <StatusShape status={status} />
      {word}
    </span>
  );
}
