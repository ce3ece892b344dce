"""Writes the pages of the documentation, and the types of the page, that are made from the code and its tests.

`scripts/docs` writes them; a test fails when they are not what they should be.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from noetl.dsl.document.problem_codes import CODES  # noqa: E402 - after the path is set
from noetl.graph import draw  # noqa: E402 - after the path is set
from noetl.loader import load  # noqa: E402 - after the path is set
from tests.reference.api_page import api_page  # noqa: E402 - after the path is set
from tests.reference.clause_collector import PREFIX  # noqa: E402 - after the path is set
from tests.reference.clauses import CLAUSES, DEVIATIONS, REMARKS  # noqa: E402 - after the path is set
from tests.reference.event_page import events_page  # noqa: E402 - after the path is set
from tests.reference.jinja_page import jinja_page  # noqa: E402 - after the path is set
from tests.reference.metrics_page import metrics_page  # noqa: E402 - after the path is set
from tests.reference.tool_pages import TOOL_PAGES  # noqa: E402 - after the path is set
from tests.reference.typescript_types import typescript_types  # noqa: E402 - after the path is set

TITLES = {
    "000": "Formal specification",
    "001": "Structure guide",
    "002": "Mental model",
    "003": "Draft dialect",
    "004": "Version 1",
}


def checks_index() -> str:
    lines = [
        "# Checks",
        "",
        "Everything `noetl validate` can say, by code. An error makes a playbook invalid; a warning does so",
        "with `--strict`. The comment `# noetl: ignore CODE` on a line silences warnings of that code there, and",
        "those errors that leave the playbook whole: the last column says so.",
        "",
        "| code | severity | meaning | can be silenced |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| [{name}]({name}.md) | {code.severity} | {code.summary} | {'yes' if code.silenceable else 'no'} |"
        for name, code in sorted(CODES.items())
    ]
    return "\n".join(lines) + "\n"


def conformance() -> str:
    tests = tests_by_clause()
    proven = sum(1 for clause in CLAUSES if tests.get(clause))
    lines = [
        "# Conformance",
        "",
        "Every MUST of the specification and the tests that prove it. A test names its clause with",
        f'`@pytest.mark.spec("…")`. {proven} of {len(CLAUSES)} clauses have a test. Where a clause does not hold whole, it',
        f"says so in italics: {len(REMARKS)} of them.",
        "",
        "`noetl run` is server and worker in one process: nothing listens, and which events each may say is held between",
        "its parts. What the specification says of a server, its workers and their pools is proven by tests that start them",
        "as processes.",
        "",
        "## Deviations",
        "",
        "What is done otherwise on purpose, and why.",
        "",
        "| clause | what is done | why |",
        "| --- | --- | --- |",
    ]
    for deviation in DEVIATIONS:
        record = f" ([record](adr/{deviation.record}.md))" if deviation.record else ""
        lines.append(f"| {deviation.clause} | {deviation.instead} | {deviation.reason}{record} |")
    document = ""
    for clause, text in CLAUSES.items():
        if clause[:3] != document:
            document = clause[:3]
            lines += [
                "",
                f"## {document} {TITLES[document]}",
                "",
                "| clause | says | tests |",
                "| --- | --- | --- |",
            ]
        named = "<br>".join(f"`{name}`" for name in tests.get(clause, ())) or "**none**"
        remark = f"<br>*{REMARKS[clause]}*" if clause in REMARKS else ""
        lines.append(f"| {clause} | {text}{remark} | {named} |")
    return "\n".join(lines) + "\n"


@cache
def tests_by_clause() -> dict[str, list[str]]:
    """The tests that carry each clause, as `file::name`. A clause nobody knows is an error."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "tests.reference.clause_collector",
        *_files_with_clauses(),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith(PREFIX)), None)
    if line is None:
        raise SystemExit(done.stdout + done.stderr)
    tests: dict[str, list[str]] = json.loads(line.removeprefix(PREFIX))
    if unknown := sorted(set(tests) - set(CLAUSES)):
        raise SystemExit(f"no such clause: {', '.join(unknown)} (in {tests[unknown[0]][0]})")
    return tests


def _files_with_clauses() -> list[str]:
    """Those that name clauses, or may by what lies beside them: to import all tests takes three times as long."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if "mark.spec(" in path.read_text("utf-8")]
    helped = {path.parent for path in files if not path.name.startswith("test_")}
    tests = {path for path in files if path.name.startswith("test_")}
    return sorted(map(str, tests | {path for folder in helped for path in folder.glob("test_*.py")}))


def quickstart_picture() -> str:
    return draw(load(ROOT / "examples" / "quickstart.yaml"), "svg").decode()


PAGES: dict[str, Callable[[], str]] = {
    "docs/checks/README.md": checks_index,
    "docs/conformance.md": conformance,
    "docs/api.md": api_page,
    "docs/events.md": events_page,
    "docs/jinja.md": jinja_page,
    "docs/metrics.md": metrics_page,
    "docs/pictures/quickstart.svg": quickstart_picture,
    "web/src/api/types.ts": typescript_types,
    **TOOL_PAGES,
}


def main() -> None:
    for name, render in PAGES.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
