import * as assert from "node:assert/strict";
import { test } from "node:test";
import { stretchesOf, tailOf } from "../src/page/execution/list-parts";

const list = {
  $noetl: "manifest" as const,
  total: 13,
  chunks: [
    { key: "a", from: 0, to: 4 },
    { key: "b", from: 4, to: 5 },
    { key: "a", from: 5, to: 10, skip: 5 },
  ],
  tail: ["x", "y", "z"],
};

test("rows are read from those parts alone that hold them, in order", () => {
  assert.deepEqual(stretchesOf(list, 3, 4), {
    stretches: [
      { key: "a", from: 3, count: 1 },
      { key: "b", from: 0, count: 1 },
      { key: "a", from: 5, count: 2 },
    ],
    total: 13,
  });
  assert.deepEqual(stretchesOf(list, 0, 4).stretches, [{ key: "a", from: 0, count: 4 }]);
  assert.deepEqual(stretchesOf(list, 10, 4).stretches, []);
});

test("the last rows may stand in the marker itself", () => {
  assert.deepEqual(tailOf(list, 0, 10), []);
  assert.deepEqual(tailOf(list, 8, 4), ["x", "y"]);
  assert.deepEqual(tailOf(list, 11, 100), ["y", "z"]);
  assert.deepEqual(tailOf({ $noetl: "manifest", total: 1, chunks: [], tail: ["x"] }, 0, 100), ["x"]);
});
