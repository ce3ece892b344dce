import * as assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryIndex } from "../src/api/types";
import { History } from "../src/page/execution/history";

const PLACES = ["enqueued", "parked", "waiting", "joined", "ready", "claimed", "suspended", "ended", "done", "failed", "cancelled", "skipped"];

/** Two steps: `a` runs and its arc 1 brings a token to `b`. */
function index(changes: Partial<HistoryIndex> = {}): HistoryIndex {
  return {
    execution_id: "x", status: "running", hash: "h", after: 0, last: 5, base: 1_000,
    names: ["TokenEnqueued", "StepScheduled", "TokenClaimed", "StepDone"],
    steps: ["a", "b"], places: PLACES, runs: ["r1"],
    time: [0, 10, 10, 10, 10], name: [0, 1, 2, 3, 0], step: [0, 0, 0, 0, 1], run: [-1, 0, 0, 0, 0], arc: [-1, -1, -1, -1, 1],
    marking: [[0, 0, 1], [0, 0, -1, 0, 4, 1], [0, 4, -1, 0, 5, 1], [0, 5, -1, 0, 8, 1], [1, 0, 1]],
    errors: [4], cuts: [2, 3], ...changes,
  } as HistoryIndex;
}

test("the state of each event comes from the differences, forwards and back", () => {
  const history = new History();
  assert.equal(history.append(index()), true);
  const status = (seq: number) => [...history.stateAt(seq).steps].map(([step, state]) => `${step} ${state.status}`);
  assert.deepEqual(status(5), ["a completed", "b waiting"]);
  assert.deepEqual(status(3), ["a running"]);
  assert.deepEqual(status(2), ["a ready"]);
  assert.deepEqual(status(1), ["a waiting"]);
  assert.deepEqual(status(0), []);
  assert.deepEqual(status(5), ["a completed", "b waiting"]);
});

test("an arc counts as taken from the event that brought its token", () => {
  const history = new History();
  history.append(index());
  assert.equal(history.stateAt(4).taken.get("a 1"), undefined);
  assert.equal(history.stateAt(5).taken.get("a 1"), 1);
  assert.equal(history.stateAt(4).taken.get("a 1"), 0);
});

test("what is told twice counts once, and a gap is an error", () => {
  const history = new History();
  history.append(index());
  assert.equal(history.append(index()), false);
  assert.equal(history.last, 5);
  assert.deepEqual(history.runs, ["r1"]);
  assert.deepEqual(history.cuts, [2, 5]);
  const next = index({ after: 4, last: 6, time: [30, 7], name: [0, 1], step: [1, 1], run: [0, 1], arc: [1, -1], marking: [[1, 0, 1], [1, 0, -1, 1, 4, 1]], runs: ["r2"], errors: [], cuts: [2] });
  assert.equal(history.append(next), true);
  assert.equal(history.last, 6);
  assert.equal(history.stepAt(6), "b");
  assert.equal(history.runAt(6), "r2");
  assert.throws(() => history.append(index({ after: 9 })), /events 7 to 9 are missing/);
});

test("a time leads to the event that was the last by then", () => {
  const history = new History();
  history.append(index());
  assert.deepEqual([999, 1_000, 1_015, 9_999].map((time) => history.seqAtTime(time)), [1, 1, 2, 5]);
  assert.equal(history.cutAfter(1), 2);
  assert.equal(history.cutAfter(3), 5);
});
