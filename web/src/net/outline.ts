import type { NetAnswer } from "../api/types";

/** A step in the tree of a net. `again` steps stand further up with what follows them. */
export interface OutlineRow {
  readonly step: string;
  readonly depth: number;
  readonly guard: string;
  readonly again: boolean;
}

/** The net as a tree from its entry, in the order of arcs; steps that no arc leads to come last. */
export function outlineRows(net: NetAnswer): OutlineRow[] {
  const routes = new Map<string, { target: string; guard: string }[]>();
  for (const route of net.routes) {
    const list = routes.get(route.source) ?? [];
    list.push(route);
    routes.set(route.source, list);
  }
  const rows: OutlineRow[] = [];
  const shown = new Set<string>();
  const visit = (first: string) => {
    // A stack, not recursion: a net may be a chain of thousands.
    const stack = [{ step: first, depth: 1, guard: "" }];
    while (stack.length) {
      const { step, depth, guard } = stack.pop()!;
      const again = shown.has(step);
      rows.push({ step, depth, guard, again });
      if (again) continue;
      shown.add(step);
      const next = routes.get(step) ?? [];
      // A chain stays on one level: only a choice goes deeper.
      const deeper = depth + (next.length > 1 ? 1 : 0);
      for (const route of [...next].reverse()) stack.push({ step: route.target, depth: deeper, guard: route.guard });
    }
  };
  visit(net.entry);
  for (const box of net.boxes) if (!shown.has(box.step)) visit(box.step);
  return rows;
}
