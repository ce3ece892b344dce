import { equal } from "node:assert/strict";
import { test } from "node:test";
import { columnOf, unitsOf, wordEnd } from "../src/editor/positions";

test("columns are code points, offsets are units of UTF-16", () => {
  const line = "a: 😀 whem";
  equal(unitsOf(line, 1), 0);
  equal(unitsOf(line, 4), 3);
  equal(unitsOf(line, 5), 5);
  equal(columnOf(line, 6), 6);
  equal(columnOf(line, 5), 5);
  equal(unitsOf(line, columnOf(line, 8)), 8);
});

test("a column behind the end is the end", () => {
  equal(unitsOf("abc", 99), 3);
});

test("a word is marked whole, something else as one character", () => {
  equal(wordEnd("  whem: x", 2), 6);
  equal(wordEnd("  [x", 2), 3);
  equal(wordEnd("ab", 2), 2);
});
