import { equal } from "node:assert/strict";
import { test } from "node:test";
import { absolute, brief, duration, instant, relative } from "../src/format/time";

test("the hour that comes twice at the end of summer time is told apart by its offset", () => {
  const first = instant("2026-10-25T00:30:00Z");
  equal(absolute(first, "Europe/Kyiv"), "2026-10-25 03:30:00 +03:00");
  equal(absolute(first + 3_600_000, "Europe/Kyiv"), "2026-10-25 03:30:00 +02:00");
});

test("UTC is written as such, and midnight is hour 0", () => {
  equal(absolute(instant("2026-01-02T00:00:00Z"), "UTC"), "2026-01-02 00:00:00 UTC");
});

test("a time without a zone is UTC", () => {
  equal(instant("2026-01-02T03:04:05.123456"), Date.UTC(2026, 0, 2, 3, 4, 5, 123));
  equal(instant("2026-01-02T05:04:05+02:00"), Date.UTC(2026, 0, 2, 3, 4, 5));
});

test("a day that is today in the zone is left out", () => {
  const now = instant("2026-01-02T23:30:00Z");
  equal(brief(instant("2026-01-02T22:30:00Z"), "Europe/Kyiv", now), "00:30:00");
  equal(brief(instant("2026-01-02T21:30:00Z"), "Europe/Kyiv", now), "2026-01-02 23:30:00");
});

test("distances have one unit", () => {
  equal(relative(0, 999), "now");
  equal(relative(0, 59_999), "59 s ago");
  equal(relative(0, 60_000), "1 min ago");
  equal(relative(7_200_000, 0), "in 2 h");
  equal(relative(0, 86_400_000 * 3), "3 d ago");
});

test("durations have two units at most, and no 60 seconds", () => {
  equal(duration(0), "0 ms");
  equal(duration(333), "333 ms");
  equal(duration(9_996), "10.0 s");
  equal(duration(59_960), "1 min");
  equal(duration(119_900), "2 min");
  equal(duration(3_599_700), "1 h");
  equal(duration(252_000), "4 min 12 s");
  equal(duration(187_000_000), "2 d 4 h");
});
