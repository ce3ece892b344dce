/** The rows of the list: pages of the API, kept up by the stream. Nothing moves by itself while somebody looks at it. */
import { signal } from "@preact/signals";
import { asProblem, get } from "../../api/client";
import type { ExecutionItem, ExecutionItems, ProblemDocument } from "../../api/types";
import type { Message } from "../../stream";
import { listQuery, type ListFilter } from "./filter";

const PAGE_SIZE = 100;

export class ExecutionList {
  readonly rows = signal<ExecutionItem[]>([]);
  readonly problem = signal<ProblemDocument | undefined>(undefined);
  /** Null before the first page has come. */
  readonly complete = signal<boolean | null>(null);
  /** New ones that wait above, because the reader is somewhere in the list. */
  readonly fresh = signal<ExecutionItem[]>([]);
  /** Whether new rows may push the others down: the reader is at the top, and points at none. */
  mayMove = () => true;
  private cursor: string | null = null;
  private reading: AbortController | null = null;
  private catchingUp = false;
  private catchUpAgain = false;

  constructor(readonly filter: ListFilter) {}

  /** The first page, or the next one. One request at a time. */
  async more(): Promise<void> {
    if (this.reading || this.complete.value === true) return;
    this.reading = new AbortController();
    try {
      const answer = await this.page(this.cursor, this.reading.signal);
      const known = new Set(this.rows.value.map((row) => row.execution_id));
      this.rows.value = [...this.rows.value, ...answer.executions.filter((row) => !known.has(row.execution_id))];
      this.cursor = answer.next_cursor;
      this.complete.value = answer.next_cursor === null;
      this.problem.value = undefined;
    } catch (error) {
      if (!this.reading.signal.aborted) this.problem.value = asProblem(error);
    } finally {
      this.reading = null;
    }
  }

  end(): void {
    this.reading?.abort();
  }

  receive(message: Message): void {
    if (message.event === "open") void this.catchUp();
    if (message.event !== "executions") return;
    const changed = new Map(message.executions.map((item) => [item.execution_id, item]));
    this.rows.value = this.rows.value.map((row) => changed.get(row.execution_id) ?? row);
    this.fresh.value = this.fresh.value.map((row) => changed.get(row.execution_id) ?? row);
    const known = new Set([...this.rows.value, ...this.fresh.value].map((row) => row.execution_id));
    if (message.executions.some((item) => !known.has(item.execution_id))) void this.catchUp();
  }

  showFresh(): void {
    this.rows.value = [...this.fresh.value, ...this.rows.value];
    this.fresh.value = [];
  }

  /** Asks for the newest again: the server judges whether what is new fits the filter. */
  private async catchUp(): Promise<void> {
    if (this.complete.value === null) return;
    if (this.catchingUp) {
      this.catchUpAgain = true;
      return;
    }
    this.catchingUp = true;
    try {
      const newest = (await this.page(null)).executions;
      const changed = new Map(newest.map((item) => [item.execution_id, item]));
      const known = new Set(this.rows.value.map((row) => row.execution_id));
      this.rows.value = this.rows.value.map((row) => changed.get(row.execution_id) ?? row);
      this.fresh.value = newest.filter((row) => !known.has(row.execution_id));
      if (this.mayMove()) this.showFresh();
      this.problem.value = undefined;
    } catch (error) {
      this.problem.value = asProblem(error);
    }
    setTimeout(() => {
      this.catchingUp = false;
      if (this.catchUpAgain) {
        this.catchUpAgain = false;
        void this.catchUp();
      }
    }, 500);
  }

  private page(cursor: string | null, signal?: AbortSignal): Promise<ExecutionItems> {
    return get<ExecutionItems>("executions", { query: { ...listQuery(this.filter, Date.now()), limit: PAGE_SIZE, cursor }, signal });
  }
}
