/** Two texts line by line: what was taken away, what was added, and some lines around. */

export interface DifferenceLine {
  sign: " " | "+" | "-" | "…";
  text: string;
  before: number | null;
  after: number | null;
}

/** Myers' algorithm on lines; `around` unchanged lines are kept at each change, the others folded into one line. */
export function difference(before: string, after: string, around = 3): DifferenceLine[] {
  return fold(lines(before.split("\n"), after.split("\n")), around);
}

function lines(a: string[], b: string[]): DifferenceLine[] {
  const traces: Map<number, number>[] = [];
  let furthest = new Map<number, number>([[1, 0]]);
  outer: for (let edits = 0; edits <= a.length + b.length; edits++) {
    traces.push(new Map(furthest));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? furthest.get(k + 1)! : furthest.get(k - 1)! + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      furthest.set(k, x);
      if (x >= a.length && y >= b.length) break outer;
    }
  }
  const found: DifferenceLine[] = [];
  let x = a.length;
  let y = b.length;
  for (let edits = traces.length - 1; edits >= 0; edits--) {
    const trace = traces[edits]!;
    const k = x - y;
    const down = k === -edits || (k !== edits && (trace.get(k - 1) ?? -1) < (trace.get(k + 1) ?? -1));
    const previousK = down ? k + 1 : k - 1;
    const previousX = trace.get(previousK) ?? 0;
    const previousY = previousX - previousK;
    while (x > previousX && y > previousY) {
      x--;
      y--;
      found.push({ sign: " ", text: a[x]!, before: x + 1, after: y + 1 });
    }
    if (edits === 0) break;
    if (down) {
      y--;
      found.push({ sign: "+", text: b[y]!, before: null, after: y + 1 });
    } else {
      x--;
      found.push({ sign: "-", text: a[x]!, before: x + 1, after: null });
    }
  }
  return found.reverse();
}

function fold(all: DifferenceLine[], around: number): DifferenceLine[] {
  const near = new Array<boolean>(all.length).fill(false);
  for (const [index, line] of all.entries())
    if (line.sign !== " ") for (let i = Math.max(0, index - around); i <= Math.min(all.length - 1, index + around); i++) near[i] = true;
  const kept: DifferenceLine[] = [];
  let folded = 0;
  const close = () => {
    if (folded) kept.push({ sign: "…", text: `${folded} unchanged ${folded === 1 ? "line" : "lines"}`, before: null, after: null });
    folded = 0;
  };
  for (const [index, line] of all.entries()) {
    if (near[index]) {
      close();
      kept.push(line);
    } else folded++;
  }
  close();
  return kept;
}
