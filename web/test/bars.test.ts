import * as assert from "node:assert/strict";
import { test } from "node:test";
import type { RunBar } from "../src/api/types";
import { loopText, runAt, timeRows } from "../src/time/bars";

function bar(changes: Partial<RunBar>): RunBar {
  return {
    run: "r", step: "a", line: 1, seq: 5, begin: 0, claimed: 0, end: 100, ended_seq: 9, status: "failed",
    attempts: 1, failed_attempts: 0, worked: 0, waits: [], loop: null, children: [], error: null, ...changes,
  };
}

test("before it began a run is not there, before it ended it runs, and then it is what it became", () => {
  assert.equal(runAt(bar({}), 4, 0), null);
  assert.deepEqual([runAt(bar({}), 8, 50)!.status, runAt(bar({}), 8, 50)!.end], ["running", null]);
  assert.deepEqual([runAt(bar({}), 9, 100)!.status, runAt(bar({}), 9, 100)!.end], ["failed", 100]);
});

test("what nobody had at a time is ready or waits", () => {
  const waits = [{ begin: 0, end: 10, reason: "ready" as const }, { begin: 40, end: null, reason: "signal" as const }];
  const status = (time: number, changes = {}) => runAt(bar({ waits, ...changes }), 8, time)!.status;
  assert.deepEqual([0, 9, 10, 39, 40].map((time) => status(time)), ["ready", "ready", "running", "running", "waiting"]);
  const open = { ended_seq: null, end: null };
  assert.deepEqual([status(Infinity, { ...open, status: "ready" }), status(5, { ...open, status: "running" })], ["ready", "ready"]);
});

test("an open loop in the past says how far it was", () => {
  const loop = { total: 10, begun: 10, succeeded: 8, failed: 2, open: 0, heat: null };
  assert.equal(loopText(runAt(bar({ loop }), 9, 100)!), "10/10, 2 failed");
  assert.equal(loopText(runAt(bar({ loop }), 8, 50, new Map([["r", 3]]))!), "3/10");
});

test("a step has one row; open it has a row for each run, and children below", () => {
  const child = { execution_id: "c", path: "shop/child", status: "completed", task: "t", iteration: 0, begin: 0, end: 5 };
  const bars = [bar({}), bar({ run: "q", seq: 6, children: [child] }), bar({ run: "b", step: "b", seq: 7 })];
  const keys = (open: string[]) => timeRows(bars, 10, Infinity, new Set(open), new Map([["c", [bar({ step: "inside" })]]])).map((row) => row.key);
  assert.deepEqual(keys([]), ["step a", "step b"]);
  assert.deepEqual(keys(["step a"]), ["step a", "run r", "run q", "step b"]);
  assert.deepEqual(keys(["step a", "run q", "child c"]), ["step a", "run r", "run q", "child c", "child c inside", "step b"]);
});
