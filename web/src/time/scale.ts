/** Stretches of time in which nothing was done take little room: what counts is what happened. */
export interface Fold {
  /** Microseconds since 1970. */
  readonly begin: number;
  readonly end: number;
}

interface Segment {
  readonly time: number;
  readonly until: number;
  /** Where it begins and ends in folded time. */
  readonly from: number;
  readonly to: number;
  readonly folded: boolean;
}

const FOLDED_SHARE = 0.05;
const WORTH_FOLDING = 0.08;

/** From times to folded time and back; folded time runs from 0 to `length`. */
export class FoldedScale {
  readonly length: number;
  readonly folds: readonly (Fold & { from: number; to: number })[];
  private readonly segments: readonly Segment[];

  constructor(readonly begin: number, readonly end: number, idle: readonly (readonly [number, number])[]) {
    const whole = Math.max(end - begin, 1);
    const folds = idle
      .map(([from, to]) => ({ begin: Math.max(from, begin), end: Math.min(to, end) }))
      .filter((fold) => fold.end - fold.begin > whole * WORTH_FOLDING);
    const active = whole - folds.reduce((sum, fold) => sum + fold.end - fold.begin, 0);
    const room = Math.max(active, whole * 0.001) * FOLDED_SHARE;
    const segments: Segment[] = [];
    let time = begin;
    let from = 0;
    const add = (until: number, folded: boolean) => {
      if (until <= time) return;
      const to = from + (folded ? room : until - time);
      segments.push({ time, until, from, to, folded });
      time = until;
      from = to;
    };
    for (const fold of folds) {
      add(fold.begin, false);
      add(fold.end, true);
    }
    add(begin + whole, false);
    this.segments = segments;
    this.length = from;
    this.folds = segments
      .filter((segment) => segment.folded)
      .map((segment) => ({ begin: segment.time, end: segment.until, from: segment.from, to: segment.to }));
  }

  folded(time: number): number {
    const segment = this.segments.find((item) => time <= item.until) ?? this.segments[this.segments.length - 1]!;
    const share = (time - segment.time) / (segment.until - segment.time);
    return segment.from + Math.max(0, Math.min(1, share)) * (segment.to - segment.from);
  }

  time(folded: number): number {
    const segment = this.segments.find((item) => folded <= item.to) ?? this.segments[this.segments.length - 1]!;
    const share = (folded - segment.from) / (segment.to - segment.from);
    return segment.time + Math.max(0, Math.min(1, share)) * (segment.until - segment.time);
  }

  /** Round times in a part of the folded time, none in folds, about `room` of them. */
  ticks(from: number, to: number, room: number): number[] {
    const span = this.segments.reduce(
      (sum, item) => sum + (item.folded ? 0 : Math.max(0, Math.min(item.to, to) - Math.max(item.from, from))),
      0,
    );
    const step = roundStep(span / Math.max(room, 1));
    const ticks: number[] = [];
    for (const segment of this.segments) {
      if (segment.folded || segment.to < from || segment.from > to) continue;
      const begin = this.time(Math.max(segment.from, from)) - this.begin;
      const end = this.time(Math.min(segment.to, to)) - this.begin;
      for (let tick = Math.ceil(begin / step) * step; tick <= end; tick += step) ticks.push(this.begin + tick);
    }
    return ticks;
  }
}

/** The idle stretches of an execution that has done nothing since its last event, or longer, and does nothing now. */
export function idleUntil(now: number, last: number, idle: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const open = idle.at(-1);
  return open && open[1] >= last ? [...idle.slice(0, -1), [open[0], now]] : [...idle, [last, now]];
}

/** An end behind `now` that is the same for a while: bars that end would else move with every second. */
export function roomFor(begin: number, now: number): number {
  const span = Math.max(now - begin, 1);
  const step = 2 ** Math.floor(Math.log2(span)) / 4;
  return begin + Math.ceil(span / step) * step;
}

const STEPS = [1, 2, 5];
const LARGE_STEPS = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/** The next round number of microseconds: 1, 2, 5 and so on below 10 s, then what clocks have. */
export function roundStep(least: number): number {
  for (let power = 1; power <= 1_000_000; power *= 10)
    for (const step of STEPS) if (step * power >= least) return step * power;
  for (const seconds of LARGE_STEPS) if (seconds * 1_000_000 >= least) return seconds * 1_000_000;
  return Math.ceil(least / 86_400_000_000) * 86_400_000_000;
}
