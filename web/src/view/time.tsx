/** Times and durations. One clock ticks for all of them. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { absolute, brief, duration, instant, relative } from "../format/time";
import { zone } from "../preferences";

/** Now, in milliseconds since 1970, set every second while somebody shows it. */
export const now = signal(Date.now());
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

export function useClock(): number {
  useEffect(() => {
    if (watchers++ === 0) timer = setInterval(() => (now.value = Date.now()), 1_000);
    now.value = Date.now();
    return () => {
      if (--watchers === 0) clearInterval(timer);
    };
  }, []);
  return now.value;
}

/** Absolute, in the chosen zone, and relative beside it. Its title has both zones; a copy is UTC. */
export function Time({ at, only }: { at: string; only?: "relative" | "absolute" }) {
  const current = useClock();
  const moment = instant(at);
  const utc = new Date(moment).toISOString();
  const shown = brief(moment, zone.value, current);
  return (
    <time
      class="time"
      dateTime={utc}
      title={`${absolute(moment, zone.value)} ${zone.value}\n${utc}`}
      onCopy={(event) => {
        event.clipboardData?.setData("text/plain", utc);
        event.preventDefault();
      }}
    >
      {only === "relative" ? relative(moment, current) : shown}
      {!only && <small> · {relative(moment, current)}</small>}
    </time>
  );
}

/** How long it took, or takes so far: without an end it counts on. */
export function Duration({ from, until, known }: { from: string; until: string | null; known?: number }) {
  if (until !== null) return <span class="time">{duration(known ?? instant(until) - instant(from))}</span>;
  return <Elapsed from={from} />;
}

function Elapsed({ from }: { from: string }) {
  const current = useClock();
  return <span class="time">{`${duration(Math.max(1_000, Math.floor((current - instant(from)) / 1_000) * 1_000)).replace(".00 s", " s").replace(".0 s", " s")}`}</span>;
}
