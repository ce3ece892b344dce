/** Times for people: in a zone that is always written, and relative to now. Times come as UTC text. */

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string): Intl.DateTimeFormat {
  let made = formats.get(zone);
  if (!made) {
    made = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZoneName: "longOffset",
    });
    formats.set(zone, made);
  }
  return made;
}

interface Parts {
  date: string;
  clock: string;
  /** `+02:00`, or `UTC`. */
  offset: string;
}

/** Text from the server has a zone (`Z` or an offset); what has none is UTC. */
export function instant(text: string): number {
  return Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text.replace(" ", "T")}Z`);
}

export function partsOf(milliseconds: number, zone: string): Parts {
  const part: Record<string, string> = {};
  for (const { type, value } of format(zone).formatToParts(milliseconds)) part[type] = value;
  const offset = (part.timeZoneName ?? "").replace("GMT", "");
  return {
    date: `${part.year}-${part.month}-${part.day}`,
    clock: `${part.hour}:${part.minute}:${part.second}`,
    offset: zone === "UTC" || !offset ? "UTC" : offset,
  };
}

/** `2026-03-29 03:30:00 +03:00`: the offset tells apart the two hours of the end of summer time. */
export function absolute(milliseconds: number, zone: string): string {
  const { date, clock, offset } = partsOf(milliseconds, zone);
  return `${date} ${clock} ${offset}`;
}

/** As `absolute`, without the day if that is today, without the offset: it stands beside the zone's name. */
export function brief(milliseconds: number, zone: string, now: number): string {
  const { date, clock } = partsOf(milliseconds, zone);
  return date === partsOf(now, zone).date ? clock : `${date} ${clock}`;
}

const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
] as const;

/** `3 min ago`, `in 2 h`, `now`. */
export function relative(milliseconds: number, now: number): string {
  const distance = now - milliseconds;
  const size = Math.abs(distance);
  for (const [length, unit] of UNITS)
    if (size >= length) {
      const count = Math.floor(size / length);
      return distance > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
    }
  return "now";
}

/** `0.33 s`, `4 min 12 s`, `3 h 5 min`, `2 d 4 h`: two units at most. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1) return "0 ms";
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3_600) return two(Math.floor(whole / 60), "min", whole % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return two(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(seconds / 3_600);
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

function two(first: number, large: string, second: number, small: string): string {
  return second ? `${first} ${large} ${second} ${small}` : `${first} ${large}`;
}
