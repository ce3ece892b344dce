import type { HistoryIndex } from "../../api/types";
import { arcKey, type NetState, type StepState, type StepStatus } from "../../net/step-state";

/**
 * The events of an execution as columns, and where the marking stands after any of them.
 *
 * The page folds nothing: the server's fold says what each event does to the marking, and these differences are
 * added going forward and taken away going back.
 */
export class History {
  names: string[] = [];
  steps: string[] = [];
  runs: string[] = [];
  /** By event, from 0: microseconds since 1970. */
  readonly times: number[] = [];
  readonly name: number[] = [];
  readonly step: number[] = [];
  readonly run: number[] = [];
  readonly errors = new Set<number>();
  readonly cuts: number[] = [];
  status = "";
  hash = "";
  private readonly deltas: number[][] = [];
  private readonly arcs: (string | null)[] = [];
  private readonly runSteps: number[] = [];
  private places: string[] = [];
  private counts: number[] = [];
  private taken = new Map<string, number>();
  /** By run: the events that ended its iterations, ascending. */
  private readonly iterationEnds = new Map<string, number[]>();
  private at = 0;

  get last(): number {
    return this.times.length;
  }

  /** Adds what comes after the last event; what is known already is left out. Says whether anything is new. */
  append(index: HistoryIndex): boolean {
    const changed = index.status !== this.status;
    this.status = index.status;
    if (index.after > this.last) throw new Error(`events ${this.last + 1} to ${index.after} are missing`);
    const known = this.last - index.after;
    this.adoptSteps(index);
    const names = index.names.map((name) => this.nameNumber(name));
    // Runs are given once: those of an answer that overlaps are known already.
    const begun = new Set(this.runs);
    for (const run of index.runs) if (!begun.has(run)) this.runs.push(run);
    let time = index.base;
    for (let row = 0; row < index.time.length; row++) {
      time += index.time[row]!;
      if (row < known) continue;
      this.times.push(time);
      this.name.push(names[index.name[row]!]!);
      this.step.push(index.step[row]!);
      this.run.push(index.run[row]!);
      this.deltas.push(index.marking[row]!);
      if (this.names[names[index.name[row]!]!] === "LoopIterationCompleted") this.addIterationEnd(index.run[row]!);
      this.arcs.push(this.arcOf(index.step[row]!, index.run[row]!, index.arc[row]!));
    }
    for (const seq of index.errors) this.errors.add(seq);
    let cut = index.after;
    for (const distance of index.cuts) {
      cut += distance;
      if (cut > (this.cuts[this.cuts.length - 1] ?? 0)) this.cuts.push(cut);
    }
    return changed || index.time.length > known;
  }

  nameAt(seq: number): string {
    return this.names[this.name[seq - 1] ?? -1] ?? "";
  }

  stepAt(seq: number): string | null {
    return this.steps[this.step[seq - 1] ?? -1] ?? null;
  }

  runAt(seq: number): string | null {
    return this.runs[this.run[seq - 1] ?? -1] ?? null;
  }

  timeAt(seq: number): number {
    return this.times[Math.min(Math.max(seq, 1), this.last) - 1] ?? 0;
  }

  /** The last event at or before a time; 1 if all are later. */
  seqAtTime(time: number): number {
    return Math.max(countUpTo(this.times, time), 1);
  }

  /** Where a fork at this event begins: the end of its append. */
  cutAfter(seq: number): number {
    return this.cuts.find((cut) => cut >= seq) ?? this.last;
  }

  /** Of each run, by its name, how many of its iterations had ended by an event. */
  endedIterations(seq: number): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const [run, ends] of this.iterationEnds) {
      const count = countUpTo(ends, seq);
      if (count) counts.set(run, count);
    }
    return counts;
  }

  /** How the steps stand after an event. */
  stateAt(seq: number): NetState {
    this.move(Math.min(seq, this.last));
    const steps = new Map<string, StepState>();
    this.steps.forEach((step, number) => {
      const state = this.stepState(number);
      if (state) steps.set(step, state);
    });
    return { steps, taken: new Map(this.taken) };
  }

  private stepState(number: number): StepState | null {
    const count = (place: string) => this.counts[number * this.places.length + this.places.indexOf(place)] ?? 0;
    const tokens = count("enqueued") + count("parked") + count("waiting") + count("joined");
    const held = tokens - count("enqueued");
    const open = count("ready") + count("claimed") + count("suspended");
    const ended = count("done") + count("failed") + count("cancelled") + count("skipped");
    if (!tokens && !open && !ended) return null;
    let status: StepStatus = "completed";
    if (count("claimed")) status = "running";
    else if (count("ready")) status = "ready";
    else if (count("suspended") || held || !ended) status = "waiting";
    else if (count("failed")) status = "failed";
    else if (count("cancelled")) status = "cancelled";
    else if (count("skipped")) status = "skipped";
    return { status, runs: open + ended, failed: count("failed"), tokens };
  }

  private move(seq: number): void {
    for (; this.at < seq; this.at++) this.apply(this.at, 1);
    for (; this.at > seq; this.at--) this.apply(this.at - 1, -1);
  }

  private apply(row: number, sign: 1 | -1): void {
    const delta = this.deltas[row]!;
    for (let at = 0; at < delta.length; at += 3) {
      const cell = delta[at]! * this.places.length + delta[at + 1]!;
      this.counts[cell] = (this.counts[cell] ?? 0) + sign * delta[at + 2]!;
    }
    const arc = this.arcs[row];
    if (arc) this.taken.set(arc, (this.taken.get(arc) ?? 0) + sign);
  }

  private adoptSteps(index: HistoryIndex): void {
    // After a retry with another document, numbers of steps mean others: a new history is needed.
    if (this.hash && index.hash !== this.hash) throw new Error("the playbook has changed");
    this.hash = index.hash;
    this.steps = index.steps;
    this.places = index.places;
  }

  /** Which arc brought a token; a run's own first event says what its step is. */
  private arcOf(step: number, run: number, arc: number): string | null {
    if (arc < 0) {
      if (run >= 0) this.runSteps[run] ??= step;
      return null;
    }
    const source = this.steps[this.runSteps[run] ?? -1];
    return source === undefined ? null : arcKey(source, arc);
  }

  /** The event is the last of the columns. */
  private addIterationEnd(run: number): void {
    const name = this.runs[run]!;
    const ends = this.iterationEnds.get(name);
    if (ends) ends.push(this.last);
    else this.iterationEnds.set(name, [this.last]);
  }

  private nameNumber(name: string): number {
    const known = this.names.indexOf(name);
    return known >= 0 ? known : this.names.push(name) - 1;
  }
}

/** How many of ascending numbers are at most `limit`. */
function countUpTo(ascending: readonly number[], limit: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
