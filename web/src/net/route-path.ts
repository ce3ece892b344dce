export type Point = readonly [number, number];

/** What `Path2D` has of a line; tests give their own. */
export interface PathSink {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  quadraticCurveTo(cx: number, cy: number, x: number, y: number): void;
}

export interface RouteLine {
  readonly points: readonly Point[];
  readonly merges: Point | null;
}

const RADIUS = 7;
const HEAD = 8;

/** A line with round corners, as `noetl graph` draws it. */
export function traceRoute(points: readonly Point[], sink: PathSink): void {
  const first = points[0];
  const last = points[points.length - 1];
  if (!first || !last) return;
  sink.moveTo(first[0], first[1]);
  for (let index = 1; index < points.length - 1; index++) {
    const before = points[index - 1]!;
    const corner = points[index]!;
    const after = points[index + 1]!;
    // Two corners share the line between them; an end of the line is all its own corner's.
    const into = distance(before, corner) / (index === 1 ? 1 : 2);
    const out = distance(corner, after) / (index === points.length - 2 ? 1 : 2);
    const radius = Math.min(RADIUS, into, out);
    sink.lineTo(...towards(corner, before, radius));
    sink.quadraticCurveTo(corner[0], corner[1], ...towards(corner, after, radius));
  }
  sink.lineTo(last[0], last[1]);
}

/** The three corners of the arrow head. */
export function arrowHead(points: readonly Point[]): readonly [Point, Point, Point] | null {
  const end = points[points.length - 1];
  const before = points[points.length - 2];
  if (!end || !before) return null;
  const [x, y] = end;
  if (Math.abs(x - before[0]) < Math.abs(y - before[1])) {
    const back = y > before[1] ? -HEAD : HEAD;
    return [end, [x - 4.5, y + back], [x + 4.5, y + back]];
  }
  const back = x > before[0] ? -HEAD : HEAD;
  return [end, [x + back, y - 4.5], [x + back, y + 4.5]];
}

/** The part of a route that no earlier one has drawn, and as much more as its last corner needs. */
export function drawnPoints(route: RouteLine): readonly Point[] {
  const { merges, points } = route;
  const first = points[0];
  if (!merges || !first) return points;
  const drawn: Point[] = [first];
  for (let index = 1; index < points.length; index++) {
    const start = points[index - 1]!;
    const end = points[index]!;
    const length = distance(start, end);
    const on = distance(start, merges) + distance(merges, end) - length < 0.2;
    if (on && (merges[0] !== end[0] || merges[1] !== end[1])) {
      const share = (Math.min(RADIUS, distance(merges, end)) + distance(start, merges)) / (length || 1);
      drawn.push([start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share]);
      return drawn;
    }
    drawn.push(end);
  }
  return drawn;
}

/** Routes are upright: the way along them is the distance. */
function distance(a: Point, b: Point): number {
  return Math.abs(b[0] - a[0]) + Math.abs(b[1] - a[1]);
}

function towards(start: Point, end: Point, length: number): [number, number] {
  const share = length / (distance(start, end) || 1);
  return [start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share];
}
