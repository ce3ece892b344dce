import * as assert from "node:assert/strict";
import { test } from "node:test";
import { FoldedScale, idleUntil, roomFor, roundStep } from "../src/time/scale";

test("a long idle stretch takes a twentieth of what happened", () => {
  const scale = new FoldedScale(0, 7_300, [[100, 7_200]]);
  assert.equal(scale.folded(100), 100);
  assert.equal(scale.folded(7_200), 110);
  assert.equal(scale.length, 210);
  assert.deepEqual(scale.folds, [{ begin: 100, end: 7_200, from: 100, to: 110 }]);
});

test("every time comes back from where it is shown", () => {
  const scale = new FoldedScale(1_000, 9_000, [[2_000, 7_000]]);
  for (const time of [1_000, 1_500, 2_000, 4_500, 7_000, 8_999, 9_000])
    assert.ok(Math.abs(scale.time(scale.folded(time)) - time) < 1e-6);
});

test("short pauses are not folded, and a moment has a length", () => {
  assert.deepEqual(new FoldedScale(0, 1_000, [[100, 150]]).folds, []);
  assert.equal(new FoldedScale(5, 5, []).length, 1);
});

test("ticks are round and never in a fold", () => {
  const scale = new FoldedScale(0, 10_000, [[2_000, 9_000]]);
  assert.deepEqual(scale.ticks(0, scale.length, 3), [0, 1_000, 2_000, 9_000, 10_000]);
  assert.equal(roundStep(11_000_000), 15_000_000);
});

test("what has been idle since the last event is idle until now", () => {
  assert.deepEqual(idleUntil(90, 50, [[10, 20]]), [[10, 20], [50, 90]]);
  assert.deepEqual(idleUntil(90, 50, [[10, 20], [30, 50]]), [[10, 20], [30, 90]]);
  assert.deepEqual(idleUntil(90, 50, []), [[50, 90]]);
});

test("the room for what is under way grows now and then, and is never short", () => {
  const ends = Array.from({ length: 600 }, (_, second) => roomFor(5, 5 + (second + 1) * 1_000_000));
  ends.forEach((end, second) => assert.ok(end >= 5 + (second + 1) * 1_000_000 && end <= 5 + (second + 1) * 1_250_000 + 1));
  assert.ok(new Set(ends).size < 45);
});
