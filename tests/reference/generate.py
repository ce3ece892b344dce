"""Writes the pages of the documentation that are made from the code and its tests.

`scripts/docs` writes them; a test fails when they are not what they should be.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from noetl.dsl.codes import CODES  # noqa: E402
from noetl.graph import draw  # noqa: E402
from noetl.loading import load  # noqa: E402
from tests.reference.clauses import CLAUSES  # noqa: E402

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
        "with `--strict`. The comment `# noetl: ignore CODE` on a line silences that code there.",
        "",
        "| code | severity | meaning |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| [{name}]({name}.md) | {code.severity} | {code.summary} |" for name, code in sorted(CODES.items())
    ]
    return "\n".join(lines) + "\n"


def conformance() -> str:
    tests = tests_by_clause()
    proven = sum(1 for clause in CLAUSES if tests.get(clause))
    lines = [
        "# Conformance",
        "",
        "Every MUST of the specification and the tests that prove it. A test names its clause with",
        f'`@pytest.mark.spec("…")`. {proven} of {len(CLAUSES)} clauses have a test.',
    ]
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
        named = "<br>".join(f"`{name}`" for name in tests.get(clause, ())) or "**none yet**"
        lines.append(f"| {clause} | {text} | {named} |")
    return "\n".join(lines) + "\n"


def tests_by_clause() -> dict[str, list[str]]:
    """The tests that carry each clause, as `file::name`. A clause nobody knows is an error."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for clause, name in _marks(ast.parse(path.read_text("utf-8"))):
            if clause not in CLAUSES:
                raise SystemExit(f"{path.relative_to(ROOT)}::{name} names the unknown clause `{clause}`")
            test = f"{path.relative_to(ROOT / 'tests')}::{name}"
            if test not in found[clause]:
                found[clause].append(test)
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                yield from ((clause, node.name) for clause in _clauses(decorator))


def _clauses(node: ast.AST) -> Iterator[str]:
    """The arguments of every `pytest.mark.spec(…)` in a decorator, parameter sets included."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "spec":
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def quickstart_picture() -> str:
    return draw(load(ROOT / "examples" / "quickstart.yaml"), "svg").decode()


PAGES = {
    "docs/checks/README.md": checks_index,
    "docs/conformance.md": conformance,
    "docs/pictures/quickstart.svg": quickstart_picture,
}


def main() -> None:
    for name, render in PAGES.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
