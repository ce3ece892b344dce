"""What every page is held against: the rules of axe, and targets that a finger hits."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SMALL_TARGETS = """() => [...document.querySelectorAll('button, input, select, textarea, a.button, .tabs a, nav a')]
  .filter(item => item.checkVisibility() && !item.closest('label, [aria-hidden=true]'))
  .map(item => [item, item.getBoundingClientRect()])
  .filter(([, box]) => box.width > 1 && (box.width < 24 || box.height < 24))
  .map(([item, box]) => `${item.outerHTML.slice(0, 90)} ${Math.round(box.width)}x${Math.round(box.height)}`)"""


def violations(page: Page) -> list[str]:
    """What axe finds on a page."""
    page.evaluate(AXE.read_text())
    return _run(page, RULES)


def violations_in_both_themes(page: Page) -> list[str]:
    """What axe finds on a page that is shown in the light theme; what differs in the dark one are colours."""
    light = violations(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")  # no colours on their way
    dark = _run(page, {"type": "rule", "values": ["color-contrast"]})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    return light + dark


def _run(page: Page, rules: list[str] | dict[str, Any]) -> list[str]:
    options: dict[str, Any] = {"runOnly": rules, "resultTypes": ["violations"]}
    violations = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [
        f"{item['id']}: {node['target']} {node['failureSummary']}"
        for item in violations
        for node in item["nodes"]
    ]
