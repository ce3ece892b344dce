"""What the page weighs, and that its parts work by themselves."""

import json
import subprocess
from pathlib import Path

from playwright.sync_api import expect

from noetl.web.assets import PAGE
from tests.web.conftest import OpenPage

ROOT = Path(__file__).parents[2]
KILOBYTE = 1_000


def _packed(*entries: str) -> int:
    """Bytes over the network, of these sources and all that they import at once."""
    modules: dict[str, list[str]] = json.loads((PAGE / "modules.json").read_text())
    files = {name for entry in entries for name in modules[entry]}
    return sum((PAGE / f"{name}.gz").stat().st_size for name in files)


FIRST = ("src/main.tsx", "src/head.ts", "src/style/main.css")


def test_the_first_load_is_small() -> None:
    assert _packed(*FIRST, "src/page/home.tsx") <= 60 * KILOBYTE


def test_no_page_but_the_editor_loads_more_than_its_share() -> None:
    modules: dict[str, list[str]] = json.loads((PAGE / "modules.json").read_text())
    pages = [entry for entry in modules if entry.startswith("src/page/")]
    assert {page: size for page in pages if (size := _packed(*FIRST, page)) > 60 * KILOBYTE} == {}


def test_the_editor_is_within_its_budget_and_comes_late() -> None:
    assert _packed("src/editor/editor.ts") <= 150 * KILOBYTE
    assert _packed(*FIRST, "src/page/edit.tsx") <= 60 * KILOBYTE


def test_what_is_loaded_first_is_what_was_weighed(open_page: OpenPage) -> None:
    page = open_page("/playbooks")
    expect(page.get_by_role("table", name="Playbooks")).to_be_visible()
    loaded = page.evaluate(
        "performance.getEntriesByType('resource').filter(e => e.name.includes('/assets/')).reduce((sum, e) => sum + e.encodedBodySize, 0)"
    )
    assert loaded <= 60 * KILOBYTE
    assert (
        page.evaluate("performance.getEntriesByType('resource').some(e => e.name.includes('editor'))")
        is False
    )


def test_what_the_address_needs_is_asked_for_before_the_page_has_begun(open_page: OpenPage) -> None:
    page = open_page("/healthz")
    page.route("**/assets/main-*.js", lambda route: route.abort())
    modules: dict[str, list[str]] = json.loads((PAGE / "modules.json").read_text())
    wanted = set(modules["src/page/execution/index.tsx"])
    loaded: set[str] = set()
    page.on("request", lambda request: loaded.add("assets/" + request.url.rpartition("/")[2]))
    page.goto("/executions/01a1e1b3-6f44-7256-8856-d76ebd1f2d24?step=start", wait_until="load")
    page.wait_for_load_state("networkidle")
    assert wanted - loaded == set()
    assert not any(name.rpartition("/")[2].startswith("home-") for name in loaded)


def test_the_unit_tests_of_the_page_pass() -> None:
    done = subprocess.run([ROOT / "scripts" / "web", "--test"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
