import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { command, payload } from "../src/format/command";
import { bytes, grouped, plural } from "../src/format/number";
import { isTable, oneLine } from "../src/format/json";
import { rowsInView, scrollFor } from "../src/list/virtual-list";

test("a command survives a shell", () => {
  equal(command("execute", "shop/prices@3", ...payload({ text: "it's $HOME" })), `noetl execute shop/prices@3 --payload '{"text":"it'\\''s $HOME"}'`);
  equal(command("executions", "cancel", "", null, "id"), "noetl executions cancel id");
});

test("numbers for people", () => {
  equal(plural(1, "run"), "1 run");
  equal(plural(0, "run"), "0 runs");
  equal(grouped(1234), "1234");
  equal(grouped(1234567), "1\u202f234\u202f567");
  equal(bytes(1_048_576), "1.0 MiB");
  equal(bytes(12), "12 bytes");
});

test("a list of mappings is a table; markers are not", () => {
  equal(isTable([{ a: 1 }, { b: 2 }]), true);
  equal(isTable([{ $noetl: "ref" }]), false);
  equal(isTable([]), false);
  equal(oneLine("x".repeat(200), 10), `"xxxxxxxx…`);
});

test("drawn rows are those in view and a few more, and never outside", () => {
  deepEqual(rowsInView(10, 40, 0, 1_000), { first: 0, end: 10 });
  deepEqual(rowsInView(100_000, 40, 40_000, 400), { first: 992, end: 1_018 });
  deepEqual(rowsInView(5, 40, 99_999, 400), { first: 0, end: 5 });
  deepEqual(rowsInView(0, 40, 0, 400), { first: 0, end: 0 });
});

test("scrolling follows the chosen row only as far as it must", () => {
  equal(scrollFor(3, 40, 0, 400), 0);
  equal(scrollFor(10, 40, 0, 400), 40);
  equal(scrollFor(2, 40, 200, 400), 80);
});
