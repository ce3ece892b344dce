"""Measures the times of the web page in a real browser, and holds them against their budgets. Needs Chromium.

.venv/bin/python -m bench.page
.venv/bin/python -m bench.page --rounds 1 --warm-ups 0 --shrink 20
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, CDPSession, Error, Page, sync_playwright

from bench.page_playbooks import layered_net, loop_playbook, steps_playbook, waits_playbook
from bench.server_process import StartFailed, admin_token, started_server
from bench.summary import spread_of
from noetl import Client
from noetl.graph.layout import layout
from noetl.ports.http_api import StartExecution

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chromium-headless-shell",
)
MOVES = 30
FRAMES = 60
SIGNALS = 5
MEGABYTE = 1_000_000

SEEN = """selector => {
  const note = () => {
    if (window.seen || !selector.split(" & ").every(part => document.querySelector(part))) return;
    window.seen = -1;
    requestAnimationFrame(() => setTimeout(() => { window.seen = performance.now(); }));
  };
  new MutationObserver(note).observe(document, {childList: true, subtree: true, attributes: true});
}"""
"""Notes when all parts of a selector are there and were drawn, in milliseconds since the navigation."""
STREAMS = """window.streams = [];
window.EventSource = class extends EventSource {
  constructor(...words) { super(...words); window.streams.push(this); }
};"""
"""Keeps the streams that the page opens."""
MOVE = """seq => new Promise(done => {
  const slider = document.querySelector("input[type=range]");
  const began = performance.now();
  slider.value = seq;
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now() - began); port2.postMessage(0); });
})"""
"""Moves the slider; milliseconds until that is drawn."""
ZOOM = """frames => new Promise(done => {
  const net = document.querySelector(".net-window");
  const bounds = net.getBoundingClientRect();
  const times = [];
  const frame = time => {
    times.push(time);
    if (times.length > frames) return done(times.slice(1).map((time, index) => time - times[index]));
    const deltaY = times.length % 20 < 10 ? -60 : 60;
    const place = {clientX: bounds.x + 200, clientY: bounds.y + 100};
    net.dispatchEvent(new WheelEvent("wheel", {deltaY, ...place, bubbles: true, cancelable: true}));
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""
"""Zooms in and out, a bit in each frame; milliseconds from frame to frame."""
SHOWN = """last => new Promise(done => {
  const slider = document.querySelector("input[type=range]");
  const look = () => {
    if (Number(slider.max) <= last) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(Date.now())));
  };
  const observer = new MutationObserver(look);
  observer.observe(slider, {attributes: true});
  look();
})"""
"""When an event after `last` is on the screen, in milliseconds since 1970."""


class Budget(NamedTuple):
    name: str
    most: float
    unit: str


USABLE = Budget("usable, the first page", 300, "ms")
OPEN = Budget("10,000 events, open", 500, "ms")
SLIDER_EVENTS = Budget("slider, 10,000 events", 50, "ms")
SLIDER_STEPS = Budget("slider, 1,000 steps", 50, "ms")
SCRIPT = Budget("script per frame, p95", 8, "ms")
FRAME = Budget("frame, p95", 100, "ms")
LIVE = Budget("event to screen", 150, "ms")
HEAP = Budget("heap, 10,000 events", 50, "MB")
LAYOUT = Budget("layout of 1,000 layered steps, processor time", 1_000, "ms")
BUDGETS = (USABLE, OPEN, SLIDER_EVENTS, SLIDER_STEPS, SCRIPT, FRAME, LIVE, HEAP, LAYOUT)


class PageBench:
    """What there is to look at: a server, a browser, and executions that have ended, or wait."""

    def __init__(self, browser: Browser, client: Client, url: str, token: str, shrink: int) -> None:
        self._browser, self._client, self._url, self._token = browser, client, url, token
        self._shrink = shrink
        self._events = self._run_to_end(loop_playbook(2_500 // shrink), "bench/events")
        self._steps = self._run_to_end(steps_playbook(20, max(50 // shrink, 1)), "bench/steps")
        client.register(waits_playbook(SIGNALS))

    def _run_to_end(self, text: str, path: str) -> str:
        self._client.register(text)
        execution_id = self._client.start(StartExecution(path=path)).execution_id
        status = self._client.wait(execution_id).status
        if status != "completed":
            raise RuntimeError(f"{path} has {status}")
        return execution_id

    def _open(self, path: str, selector: str) -> tuple[Page, float]:
        """In a browser that has nothing yet; milliseconds from the navigation until it is drawn."""
        context = self._browser.new_context(
            base_url=self._url, viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
        )
        headers = {"Origin": self._url, "Sec-Fetch-Site": "same-origin"}
        if not context.request.post("/api/session", data={"token": self._token}, headers=headers).ok:
            raise RuntimeError("the server does not take its own token")
        page = context.new_page()
        page.add_init_script(f"({SEEN})({selector!r})")
        page.add_init_script(STREAMS)
        page.goto(path)
        return page, _poll(page, "window.seen > 0 && window.seen")

    def measure(self) -> dict[Budget, float]:
        """One round, in the units of the budgets."""
        values = {LAYOUT: _layout_milliseconds(self._shrink)}
        page, values[USABLE] = self._open("/", "main h1")
        page.context.close()
        page, values[OPEN] = self._open(
            f"/executions/{self._events}", ".net-card & .timeline-row & input[type=range]"
        )
        slider, script = _move_slider(page)
        values[SLIDER_EVENTS] = statistics.median(slider)
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        values[HEAP] = page.evaluate("performance.memory.usedJSHeapSize") / MEGABYTE
        page.context.close()
        page, _ = self._open(f"/executions/{self._steps}", ".net-card & .timeline-row & input[type=range]")
        slider, more_script = _move_slider(page)
        values[SLIDER_STEPS] = statistics.median(slider)
        values[SCRIPT] = max(_p95(script), _p95(more_script))
        page.get_by_role("button", name="Show all").first.click()
        values[FRAME] = _p95(page.evaluate(ZOOM, FRAMES))
        page.context.close()
        values[LIVE] = self._live()
        return values

    def _live(self) -> float:
        """From before a signal is sent until the event that it makes is drawn."""
        execution_id = self._client.start(StartExecution(path="bench/waits")).execution_id
        page, _ = self._open(f"/executions/{execution_id}", ".net-card & .timeline-row & input[type=range]")
        _poll(page, "window.streams.some(stream => stream.readyState === EventSource.OPEN)")
        times = []
        for _ in range(SIGNALS):
            last = page.evaluate("Number(document.querySelector('input[type=range]').max)")
            page.evaluate(
                f"last => {{ window.shown = null; ({SHOWN})(last).then(at => window.shown = at); }}", last
            )
            began = time.time()
            self._client.signal(execution_id, "go")
            times.append(_poll(page, "window.shown") - began * 1e3)
            # What else the signal made must not count for the next one.
            events = self._client.show(execution_id).events
            _poll(page, f"Number(document.querySelector('input[type=range]').max) >= {events}")
        page.context.close()
        return statistics.median(times)


def _poll(page: Page, expression: str) -> float:
    """What it comes to, once it is true: the page's policy forbids Playwright to wait in the page."""
    for _ in range(1_500):
        if value := page.evaluate(expression):
            return float(value)
        page.wait_for_timeout(20)
    raise RuntimeError(f"it did not happen within 30 s: {expression}")


def _layout_milliseconds(shrink: int) -> float:
    sizes, links = layered_net(1_000 // shrink)
    began = time.process_time()
    layout(sizes, links)
    return (time.process_time() - began) * 1e3


def _move_slider(page: Page) -> tuple[list[float], list[float]]:
    """Milliseconds of each move until it is drawn, and of the scripts in it."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    last = page.evaluate("Number(document.querySelector('input[type=range]').max)")
    times, scripts = [], []
    for number in range(MOVES):
        before = _script_milliseconds(session)
        times.append(page.evaluate(MOVE, 1 + (number * 7 + 3) % MOVES * last // MOVES))
        scripts.append(_script_milliseconds(session) - before)
    return times, scripts


def _script_milliseconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "ScriptDuration")) * 1e3


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[18]


def run_rounds(
    measure: Callable[[], dict[Budget, float]], warm_ups: int, rounds: int
) -> list[dict[Budget, float]]:
    """The figures of each round; those of warm-ups are not kept."""
    return [measure() for _ in range(warm_ups + rounds)][warm_ups:]


def report_of(rounds: Sequence[dict[Budget, float]]) -> tuple[str, bool]:
    """A table of medians with quartiles, and whether all are within their budgets."""
    lines, met = [f"{'':<48}{'budget':>10}{'median':>10}{'quartiles':>20}"], True
    for budget in BUDGETS:
        spread = spread_of([values[budget] for values in rounds])
        within = spread.median <= budget.most
        met = met and within
        quartiles = f"{spread.lower:,.1f}-{spread.upper:,.1f} {budget.unit}"
        lines.append(
            f"{budget.name:<48}{budget.most:>10,g}{spread.median:>10,.1f}{quartiles:>20}"
            + ("" if within else "  missed")
        )
    return "\n".join(lines), met


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 if a budget is missed, 2 if nothing can be measured here."""
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-ups", type=int, default=1, help="rounds that are not kept")
    parser.add_argument("--shrink", type=int, default=1, help="divides the numbers of events and steps")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.warm_ups < 0 or not 1 <= options.shrink <= 50:
        parser.error("--rounds is at least 1, --warm-ups at least 0, and --shrink from 1 to 50")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print("no Chromium is installed: on Debian, apt-get install chromium", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            server = stack.enter_context(
                started_server(folder / "home", folder / "server.log", "--embedded-worker")
            )
            token = admin_token(folder / "home")
            client = Client(server.url, token)
            playwright = stack.enter_context(sync_playwright())
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--enable-precise-memory-info"]
            )
            bench = PageBench(browser, client, server.url, token, options.shrink)
            table, met = report_of(run_rounds(bench.measure, options.warm_ups, options.rounds))
        except (StartFailed, Error) as error:
            print(error, file=sys.stderr)
            return 2
    print(table)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
