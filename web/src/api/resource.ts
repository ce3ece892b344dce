/** What a page shows of the server: known data stays while it is read again, and says since when it is stale. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { subscribe, type Topic } from "../stream";
import { asProblem } from "./client";
import type { ProblemDocument } from "./types";

export interface Resource<T> {
  data: Signal<T | undefined>;
  problem: Signal<ProblemDocument | undefined>;
  /** When `data` was read, in milliseconds since 1970. */
  readAt: Signal<number>;
  /** Reads it again; the promise is kept when that is done, whether it worked or not. */
  reload: () => Promise<void>;
}

/** `read` is called at once, when `keys` change, and when one of the `topics` of the stream says so.
 *
 * Only the answer to the newest request counts. With other `keys`, the data of the former ones goes away.
 */
export function useResource<T>(
  read: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
  topics: readonly Topic[] = [],
): Resource<T> {
  const data = useSignal<T | undefined>(undefined);
  const problem = useSignal<ProblemDocument | undefined>(undefined);
  const readAt = useSignal(0);
  const running = useRef<AbortController | null>(null);
  const latest = useRef(read);
  latest.current = read;

  const reload = useMemo(
    () => async () => {
      running.current?.abort();
      const controller = new AbortController();
      running.current = controller;
      try {
        const answer = await latest.current(controller.signal);
        if (controller.signal.aborted) return;
        data.value = answer;
        problem.value = undefined;
        readAt.value = Date.now();
      } catch (error) {
        if (!controller.signal.aborted) problem.value = asProblem(error);
      }
    },
    [],
  );
  const shownFor = useRef<string>("");
  useLayoutEffect(() => {
    const wanted = JSON.stringify(keys);
    if (shownFor.current !== wanted) {
      if (shownFor.current) data.value = undefined;
      problem.value = undefined;
      shownFor.current = wanted;
    }
    void reload();
  }, keys);
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => {
    if (!topics.length) return;
    return subscribe(topics, throttled(reload));
  }, [topics.join(" ")]);
  return { data, problem, readAt, reload };
}

/** At most one call every half second, the last one never lost: a busy server is not asked for each event. */
function throttled(act: () => Promise<void>): () => void {
  let due = false;
  let busy = false;
  const run = async () => {
    if (busy) {
      due = true;
      return;
    }
    busy = true;
    await act();
    setTimeout(() => {
      busy = false;
      if (due) {
        due = false;
        void run();
      }
    }, 500);
  };
  return () => void run();
}
