import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import { asProblem, get, segments } from "../../api/client";
import type { ExecutionDetail, HistoryIndex, NetAnswer, ProblemDocument, RunBar, RunPage, VersionList } from "../../api/types";
import type { NetState } from "../../net/step-state";
import { queryValue, setQuery, settleQuery } from "../../router";
import { subscribe } from "../../stream";
import { History } from "./history";

const MOST_PAGES = 10;
const LEAST_PAUSE = 300;

export interface Timeline {
  readonly bars: readonly RunBar[];
  readonly idle: readonly (readonly [number, number])[];
  readonly begin: number;
  readonly end: number | null;
  readonly now: number;
  /** There are more runs than are drawn. */
  readonly more: boolean;
}

/** One execution as the page shows it: what the server knows, followed live, and which event is looked at. */
export class ExecutionModel {
  readonly detail = signal<ExecutionDetail | null>(null);
  readonly net = signal<NetAnswer | null>(null);
  readonly timeline = signal<Timeline | null>(null);
  /** `PATH@N` of the catalog, if it runs a registered document. */
  readonly registered = signal<string | null>(null);
  readonly problem = signal<ProblemDocument | undefined>(undefined);
  /** Of the picture alone: everything else works without it. */
  readonly netProblem = signal<ProblemDocument | undefined>(undefined);
  /** Counts what was added to the history: who reads it follows. */
  readonly version = signal(0);
  history = new History();
  /** Whether it is shown from a file, without a server. */
  isExported = false;
  private reading = false;
  private due = false;
  /** The reading of the picture; null before the first. */
  private pictured: Promise<void> | null = null;
  private stop = new AbortController();
  private pauseTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {}

  /** The event of the URL; null while the last one is followed. */
  readonly chosen: ReadonlySignal<number | null> = computed(() => {
    const text = queryValue("at");
    const seq = text === null ? NaN : Number(text);
    return Number.isInteger(seq) && seq > 0 ? seq : null;
  });
  readonly last = computed(() => (this.version.value, this.history.last));
  /** The event that every panel shows. */
  readonly at = computed(() => Math.min(this.chosen.value ?? this.last.value, this.last.value));
  /** The time of that event; of the last one `Infinity`: things are as they are. */
  readonly moment = computed(() => (this.at.value === this.last.value ? Infinity : this.history.timeAt(this.at.value)));
  readonly isLive = computed(() => this.chosen.value === null);
  readonly step = computed(() => queryValue("step"));
  readonly state: ReadonlySignal<NetState | null> = computed(() => {
    this.version.value;
    return this.history.last ? this.history.stateAt(this.at.value) : null;
  });
  /** Of steps that are ready, why no worker takes them: known of the last event alone. */
  readonly held = computed(() => {
    const detail = this.detail.value;
    return detail && !this.isOver.value && this.at.value === this.last.value && detail.events === this.last.value ? detail.waiting : [];
  });
  readonly isOver = computed(() => ["completed", "failed", "cancelled"].includes(this.detail.value?.status ?? ""));

  route(...parts: string[]): string {
    return segments("executions", this.id, ...parts);
  }

  /** Reads it once, from an exported file: there is nothing to follow. */
  async load(): Promise<void> {
    this.isExported = true;
    await this.refresh();
  }

  start(): () => void {
    void this.refresh();
    const end = subscribe([`execution:${this.id}`], () => void this.refresh());
    // No event of it tells that a worker came or went.
    const endQueue = subscribe(["queue"], () => this.detail.peek()?.waiting.length && !this.isOver.peek() && this.scheduleRest());
    return () => {
      end();
      endQueue();
      this.stop.abort();
      clearTimeout(this.pauseTimer);
    };
  }

  select(step: string | null): void {
    setQuery({ step, run: null, iteration: null }, step === this.step.peek() ? "replace" : "push");
  }

  /** Moves to an event; the last one, or null, follows again. Back leads to the page before, not to each event. */
  moveTo(seq: number | null): void {
    const last = this.history.last;
    settleQuery({ at: seq === null || seq >= last ? null : Math.max(1, seq) });
  }

  /** Stays at the last event, whatever comes. */
  hold(): void {
    setQuery({ at: this.history.last });
  }

  /** The event that is looked at; of one that has ended the last from which something can still go on. */
  forkableAt(): number {
    const at = this.at.peek();
    if (!this.isOver.peek() || at < this.history.last) return at;
    return this.history.cuts.findLast((cut) => cut < this.history.last) ?? at;
  }

  moveBy(distance: number): void {
    this.moveTo(this.at.peek() + distance);
  }

  /** Reads what is new. Called while it reads, it reads once more afterwards. */
  async refresh(): Promise<void> {
    if (this.reading) {
      this.due = true;
      return;
    }
    this.reading = true;
    try {
      await this.readNews();
      this.problem.value = undefined;
    } catch (error) {
      if (!this.stop.signal.aborted) this.problem.value = asProblem(error);
    }
    this.reading = false;
    if (this.due && !this.stop.signal.aborted) {
      this.due = false;
      void this.refresh();
    }
  }

  private async readNews(): Promise<void> {
    const first = this.history.last === 0;
    const asked = get<HistoryIndex>(this.route("index"), { query: { after: this.history.last }, signal: this.stop.signal });
    // At first all is asked at once: the server reads the history once for all of it.
    const rest = first ? this.readRest() : null;
    if (first) this.pictured = this.readNet();
    const [index] = await Promise.all([asked, rest]);
    if (this.history.hash && this.history.hash !== index.hash) {
      // It goes on with another document: numbers of steps mean others from the beginning.
      this.history = new History();
      return this.readNews();
    }
    if (!this.history.append(index) && !first) return;
    this.version.value++;
    void this.keepPicture(index.hash);
    if (!first) this.scheduleRest();
    else if (this.detail.peek()?.events !== this.history.last) this.scheduleRest();
  }

  /** Bars and values are larger than the index: while much happens, they are read a few times a second. */
  private scheduleRest(): void {
    this.pauseTimer ??= setTimeout(async () => {
      try {
        await this.readRest();
      } catch (error) {
        if (!this.stop.signal.aborted) this.problem.value = asProblem(error);
      }
      this.pauseTimer = undefined;
      if (this.timelineVersion !== this.version.peek()) this.scheduleRest();
    }, LEAST_PAUSE);
  }

  private timelineVersion = 0;

  private async readRest(): Promise<void> {
    const version = this.version.peek();
    const signal = this.stop.signal;
    // The runs first: of an execution whose runs are looked at, the server has the state that the rest is told from.
    const runs = readTimeline(this.route("runs"), signal);
    const [detail, timeline] = await Promise.all([get<ExecutionDetail>(this.route(), { signal }), runs]);
    if (this.detail.peek()?.hash !== detail.hash) void this.readVersion(detail);
    batch(() => {
      this.detail.value = detail;
      this.timeline.value = timeline;
      this.timelineVersion = version;
    });
  }

  private async readVersion(detail: ExecutionDetail): Promise<void> {
    try {
      const { versions } = await get<VersionList>(`${segments("catalog", detail.playbook)}/versions`, { signal: this.stop.signal });
      const found = versions.find((version) => version.hash === detail.hash);
      this.registered.value = found ? `${found.path}@${found.version}` : null;
    } catch {
      // It runs a document that is in no catalog, or not any more: there is no page of it.
      this.registered.value = null;
    }
  }

  /** Reads the picture again if it is of another document. What failed is tried again then, too. */
  private async keepPicture(hash: string): Promise<void> {
    await this.pictured;
    if (this.net.peek()?.hash !== hash && hash === this.history.hash) await (this.pictured = this.readNet());
  }

  private async readNet(): Promise<void> {
    try {
      this.net.value = await get<NetAnswer>(this.route("net"), { signal: this.stop.signal });
      this.netProblem.value = undefined;
    } catch (error) {
      if (!this.stop.signal.aborted) this.netProblem.value = asProblem(error);
    }
  }
}

export async function readTimeline(route: string, signal: AbortSignal): Promise<Timeline> {
  const bars: RunBar[] = [];
  let cursor: string | null = null;
  let page: RunPage;
  let pages = 0;
  do {
    page = await get<RunPage>(route, { query: { cursor }, signal });
    bars.push(...page.runs);
    cursor = page.next_cursor;
  } while (cursor && ++pages < MOST_PAGES);
  return { bars, idle: page.idle, begin: page.begin, end: page.end, now: page.now, more: cursor !== null };
}
