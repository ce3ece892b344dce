import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { changes, fieldKind, initial, misfits, schemaOf, type Schema } from "../src/format/schema";

test("a workload's values say what its fields take", () => {
  const schema = schemaOf({ name: "x", count: 3, share: 0.5, dry: false, tags: ["a"], deep: { url: "u" }, mixed: [1, "a"], nothing: null });
  const kinds = Object.fromEntries(Object.entries(schema.properties!).map(([key, item]) => [key, fieldKind(item)]));
  deepEqual(kinds, { name: "text", count: "integer", share: "number", dry: "boolean", tags: "list", deep: "object", mixed: "json", nothing: "json" });
});

test("a text with lines, or room for many characters, is a large field", () => {
  equal(fieldKind(schemaOf("a\nb")), "long");
  equal(fieldKind({ type: "string", maxLength: 2_000 }), "long");
});

test("a choice, also of a type that may be null", () => {
  equal(fieldKind({ type: ["string", "null"], enum: ["a", null] }), "choice");
  equal(fieldKind({ type: ["string", "null"] }), "text");
  equal(fieldKind({ type: ["string", "number"] }), "json");
});

test("a form begins with the defaults", () => {
  const schema: Schema = { type: "object", properties: { a: { type: "string", default: "x" }, b: { type: "boolean" }, c: { type: "integer" }, d: { type: "object", properties: { e: { type: "number", default: 1 } } } } };
  deepEqual(initial(schema), { a: "x", b: false, d: { e: 1 } });
});

test("what is wrong is said at its path", () => {
  const schema: Schema = {
    type: "object",
    required: ["reason"],
    properties: { reason: { type: "string", minLength: 3 }, deep: { type: "object", properties: { count: { type: "integer", minimum: 1, maximum: 9 } } } },
  };
  deepEqual(misfits(schema, {}), { reason: "is needed" });
  deepEqual(misfits(schema, { reason: "ok" }), { reason: "must have 3 characters or more" });
  deepEqual(misfits(schema, { reason: "fine", deep: { count: 0 } }), { "deep.count": "must be 1 or more" });
  deepEqual(misfits(schema, { reason: "fine", deep: { count: 1.5 } }), { "deep.count": "must be a whole number" });
  deepEqual(misfits(schema, { reason: "fine", deep: { count: "x" } }), { "deep.count": "must be a number" });
  deepEqual(misfits(schema, { reason: "fine", deep: { count: 9 } }), {});
});

test("a pattern that this browser cannot read is left to the server", () => {
  deepEqual(misfits({ type: "string", pattern: "(?P<x>a)" }, "b"), {});
});

test("only what differs from the defaults is named, deep", () => {
  deepEqual(changes({ a: 1, b: { c: 2, d: [1] } }, { a: 1, b: { c: 3, d: [1] } }), { b: { c: 3 } });
  deepEqual(changes({ a: 1 }, { a: 1, extra: null }), { extra: null });
});
