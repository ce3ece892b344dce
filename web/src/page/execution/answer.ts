import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem } from "../../api/client";
import type { ProblemDocument } from "../../api/types";

export interface HeldAnswer<T> {
  readonly data: T | undefined;
  readonly problem: ProblemDocument | undefined;
  /** Whether `data` is the answer to what is asked now, not to what was asked before. */
  readonly current: boolean;
}

const MOST = 200;
const DELAY = 90;
/** What the server said about an event does not change: it is asked once. */
const answers = new Map<string, unknown>();

function keep(key: string, answer: unknown): void {
  answers.delete(key);
  answers.set(key, answer);
  if (answers.size > MOST) answers.delete(answers.keys().next().value!);
}

/**
 * The answer to a question about a moment that does not change any more, by a key that says all of it.
 *
 * While the next one is read, the last one stays: a slider that moves must not make panels flicker. Only what is
 * still wanted a moment later is asked.
 */
export function useAnswer<T>(key: string | null, read: (signal: AbortSignal) => Promise<T>): HeldAnswer<T> {
  const known = key === null ? undefined : (answers.get(key) as T | undefined);
  const [state, setState] = useState<{ key: string | null; data?: T; problem?: ProblemDocument }>({ key: null });
  const first = useRef(true);
  useEffect(() => {
    if (key === null || answers.has(key)) return;
    const controller = new AbortController();
    const timer = setTimeout(
      async () => {
        try {
          const data = await read(controller.signal);
          keep(key, data);
          if (!controller.signal.aborted) setState({ key, data });
        } catch (error) {
          if (!controller.signal.aborted) setState((before) => ({ key, data: before.data, problem: asProblem(error) }));
        }
      },
      first.current ? 0 : DELAY,
    );
    first.current = false;
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  // Shown later again, after something else was: it is the last one known.
  useEffect(() => {
    if (known !== undefined && state.key !== key) setState({ key, data: known });
  }, [key, known]);
  if (known !== undefined) return { data: known, problem: undefined, current: true };
  return { data: key === null ? undefined : state.data, problem: state.key === key ? state.problem : undefined, current: false };
}
