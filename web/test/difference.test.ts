import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { difference } from "../src/format/difference";

const shape = (before: string, after: string) => difference(before, after, 1).map((line) => line.sign + line.text);

test("equal texts are one folded line", () => {
  deepEqual(shape("a\nb\nc", "a\nb\nc"), ["…3 unchanged lines"]);
});

test("a changed line is taken away and added, with its neighbours", () => {
  deepEqual(shape("a\nb\nc\nd\ne", "a\nb\nX\nd\ne"), ["…1 unchanged line", " b", "-c", "+X", " d", "…1 unchanged line"]);
});

test("lines have their numbers in both texts", () => {
  const added = difference("a\nb", "a\nnew\nb").find((line) => line.sign === "+")!;
  equal(added.after, 2);
  equal(added.before, null);
});

test("any two texts: what is not removed and what is not added are the texts", () => {
  let seed = 7;
  const random = (limit: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % limit;
  for (let round = 0; round < 200; round++) {
    const text = () => Array.from({ length: random(9) }, () => "abc"[random(3)]).join("\n");
    const [before, after] = [text(), text()];
    if (before === after) continue;
    const lines = difference(before, after, 100);
    const of = (signs: string) => lines.filter((line) => signs.includes(line.sign)).map((line) => line.text).join("\n");
    equal(of(" -"), before);
    equal(of(" +"), after);
  }
});
