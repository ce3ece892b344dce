import * as assert from "node:assert/strict";
import { test } from "node:test";
import type { NetAnswer } from "../src/api/types";
import { outlineRows } from "../src/net/outline";

function net(steps: string[], arcs: [string, string, string?][]): NetAnswer {
  return {
    entry: steps[0],
    boxes: steps.map((step) => ({ step })),
    routes: arcs.map(([source, target, guard = ""]) => ({ source, target, guard })),
  } as unknown as NetAnswer;
}

test("a chain stays on one level, a choice goes deeper, a known step is not told again", () => {
  const rows = outlineRows(net(["a", "b", "c", "d", "lost"], [["a", "b"], ["b", "c", "x > 1"], ["b", "d"], ["c", "a"]]));
  assert.deepEqual(
    rows.map((row) => `${"-".repeat(row.depth)}${row.step}${row.again ? "^" : ""}${row.guard && ` if ${row.guard}`}`),
    ["-a", "-b", "--c if x > 1", "--a^", "--d", "-lost"],
  );
});

test("a chain of ten thousand steps does not run out of stack", () => {
  const steps = Array.from({ length: 10_000 }, (_, number) => `s${number}`);
  const rows = outlineRows(net(steps, steps.slice(1).map((step, number) => [`s${number}`, step])));
  assert.equal(rows.length, 10_000);
  assert.equal(rows[9_999]!.depth, 1);
});
