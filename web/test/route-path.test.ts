import * as assert from "node:assert/strict";
import { test } from "node:test";
import { arrowHead, drawnPoints, traceRoute } from "../src/net/route-path";

test("a corner is round, and no rounder than its lines are long", () => {
  const calls: string[] = [];
  const call = (name: string) => (...numbers: number[]) => void calls.push(`${name} ${numbers.join(" ")}`);
  const sink = { moveTo: call("M"), lineTo: call("L"), quadraticCurveTo: call("Q") };
  traceRoute([[0, 0], [0, 20], [4, 20], [4, 40]], sink);
  assert.deepEqual(calls, ["M 0 0", "L 0 18", "Q 0 20 2 20", "L 2 20", "Q 4 20 4 22", "L 4 40"]);
});

test("a route that joins another one ends a little after they meet", () => {
  const route = { points: [[0, 0], [0, 20], [50, 20]], merges: [10, 20] } as const;
  assert.deepEqual(drawnPoints(route), [[0, 0], [0, 20], [17, 20]]);
});

test("the head points the way the last line goes", () => {
  assert.deepEqual(arrowHead([[5, 0], [5, 20]]), [[5, 20], [0.5, 12], [9.5, 12]]);
  assert.deepEqual(arrowHead([[20, 5], [0, 5]]), [[0, 5], [8, 0.5], [8, 9.5]]);
});
