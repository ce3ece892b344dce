"""The pages about tool kinds: by hand above, made from the types of the kind below."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from noetl.dsl.document.kind_reference import KindField, common_knobs, reference_of
from noetl.dsl.document.kinds import Kind
from noetl.tools.host.extras import install_command
from noetl.tools.kind_registry import BUILTIN

FOLDER = Path(__file__).parents[2] / "docs" / "tools"
BEGIN = "<!-- From here on scripts/docs writes. -->"

INDEX = """\
# Tools

Every task has a `kind`: the tool that runs it. `noetl tools list` lists them, with those of installed packages and
whether they run here; `noetl tools show KIND` says the same as the page of a kind.

| kind | does | effect | needs |
| --- | --- | --- | --- |
{rows}

A task whose effect is `pure` may run again at any time without anybody noticing. `noetl[all]` is every extra. More
kinds come from packages: [writing tools](../writing-tools.md).

## Keys of every task

`name`, `kind`, `desc`, `args`, `input`, `set`, `output_select` and `spec` mean the same for every kind:
[tasks](../playbooks.md#tasks).

## Knobs of every kind

Under the `spec` of a task, a step, a loop or the executor; the innermost counts. `policy` is one of them, too:
[errors and retries](../errors-and-retries.md).

{knobs}
"""

BESIDE = """\
Beside these it has the [keys of every task](README.md#keys-of-every-task) and the
[knobs of every kind](README.md#knobs-of-every-kind).\
"""


def index_page() -> str:
    rows = "\n".join(
        f"| [{kind.name}]({kind.name}.md) | {kind.summary} | `{kind.effect}` | {_needs(kind)} |"
        for kind in BUILTIN
    )
    return INDEX.format(rows=rows, knobs=_table("`spec`", common_knobs()))


def kind_page(kind: Kind) -> str:
    """The page as it is by hand, with the reference of now."""
    path = FOLDER / f"{kind.name}.md"
    page = path.read_text("utf-8") if path.exists() else f"# {kind.name}\n\n{kind.summary}\n"
    by_hand = page.partition(BEGIN)[0].rstrip("\n")
    return f"{by_hand}\n\n{BEGIN}\n\n{_reference(kind)}\n"


def _reference(kind: Kind) -> str:
    reference = reference_of(kind)
    needs = f" Needs the extra `{kind.extra}`: `{install_command(kind.extra)}`." if kind.extra else ""
    parts = [f"## Reference\n\nEffect: `{kind.effect}`.{needs}"]
    if reference.inputs:
        parts.append(_table("input", reference.inputs))
    if reference.knobs:
        parts.append(_table("`spec`", reference.knobs))
    parts.append(BESIDE)
    parts.append(f"Result: {kind.result}")
    parts += [f"`outcome.{name}`: {about}" for name, about in kind.helpers.items()]
    return "\n\n".join(parts)


def _table(head: str, entries: Iterable[KindField]) -> str:
    lines = [f"| {head} | type | default | meaning |", "| --- | --- | --- | --- |"]
    for entry in entries:
        default = "required" if entry.required else f"`{entry.default}`" if entry.default else ""
        spelt = f" Also `{'`, `'.join(entry.spellings)}`." if entry.spellings else ""
        cells = (f"`{entry.name}`", entry.type, default, entry.description + spelt)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _needs(kind: Kind) -> str:
    return f"`noetl[{kind.extra}]`" if kind.extra else ""


TOOL_PAGES: dict[str, Callable[[], str]] = {
    "docs/tools/README.md": index_page,
    **{f"docs/tools/{kind.name}.md": partial(kind_page, kind) for kind in BUILTIN},
}
