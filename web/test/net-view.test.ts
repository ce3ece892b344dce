import * as assert from "node:assert/strict";
import { test } from "node:test";
import { fitted, panned, revealed, shownPart, viewOfText, viewText, zoomed } from "../src/net/view";

const window = { width: 400, height: 300 };

test("a small picture is shown at its own size in the middle", () => {
  assert.deepEqual(fitted({ width: 100, height: 50 }, window), { scale: 1, x: 150, y: 125 });
});

test("a large picture fits with a margin", () => {
  const view = fitted({ width: 3520, height: 100 }, window);
  assert.equal(view.scale, 0.1);
  assert.equal(view.x, 24);
});

test("a tall picture is below the buttons", () => {
  const view = fitted({ width: 100, height: 1150 }, window);
  assert.deepEqual([view.scale, view.y], [0.2, 46]);
});

test("what is under the pointer stays there while zooming, and zooming has ends", () => {
  const view = zoomed({ scale: 1, x: 10, y: 20 }, 2, { x: 110, y: 70 });
  assert.deepEqual(view, { scale: 2, x: -90, y: -30 });
  assert.equal(zoomed(view, 100, { x: 0, y: 0 }).scale, 3);
});

test("a picture cannot be pushed out of its window", () => {
  const view = panned({ scale: 1, x: 0, y: 0 }, -5000, 5000, { width: 100, height: 100 }, window);
  assert.deepEqual(view, { scale: 1, x: -52, y: 252 });
});

test("a card in sight does not move the picture; one that is not comes to the middle", () => {
  const view = { scale: 1, x: 0, y: 0 };
  assert.equal(revealed(view, { x: 10, y: 10, width: 50, height: 50 }, window), view);
  const moved = revealed(view, { x: 1000, y: 10, width: 100, height: 100 }, window);
  assert.deepEqual(shownPart(moved, window), { x: 850, y: -90, width: 400, height: 300 });
});

test("a view is the same after it was written and read, with its middle kept in another window", () => {
  const picture = { width: 1000, height: 800 };
  const view = { scale: 0.5, x: -100, y: -50 };
  const text = viewText(view, window);
  assert.equal(text, "0.5,600,400");
  assert.deepEqual(viewOfText(text, picture, window), view);
  const wider = viewOfText(text, picture, { width: 600, height: 300 })!;
  assert.equal((300 - wider.x) / wider.scale, 600);
});

test("a text that is no view is none, and one too far away shows something", () => {
  const picture = { width: 100, height: 100 };
  for (const text of [null, "", "1", "1,2", "x,1,2", "1,2,3,4", "1,NaN,2"]) assert.equal(viewOfText(text, picture, window), null);
  assert.deepEqual(viewOfText("1,900000,0", picture, window), { scale: 1, x: -52, y: 150 });
  assert.equal(viewOfText("77,0,0", picture, window)!.scale, 3);
});
