"""The documents of our side. Each edition differs in every step: nothing of another one is known for it."""

from bench.workload_table import FLIGHT, Workload
from noetl.engine.catalog.playbook_record import PlaybookSource

HEAD = (
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: bench, path: bench/e{edition}}}\nworkflow:\n"
)
NOTHING, WRITE = "{kind: noop}", "{kind: bench_write}"
FIB_CODE = "fib = lambda n: n if n < 2 else fib(n - 1) + fib(n - 2)\\nresult = fib(10)"


def document_of(workload: Workload, edition: int = 0) -> PlaybookSource:
    if workload.shape in ("loop", "long loop"):
        text = loop(workload.steps, _tool(workload, edition), edition)
    else:
        text = chain(workload.steps, _tool(workload, edition), edition)
    return PlaybookSource(HEAD.format(edition=edition) + text, f"{workload.name}.yaml")


def _tool(workload: Workload, edition: int) -> str:
    if workload.shape == "tasks":
        # `os` reaches outside the process, so the code counts as one with effects: it waits for the disk.
        reach = "import os\\n" if workload.waits else ""
        return f'{{kind: python, code: "# {edition}\\n{reach}{FIB_CODE}"}}'
    return WRITE if workload.waits else NOTHING


def chain(length: int, tool: str, edition: int = 0) -> str:
    """Steps that follow one another."""
    return "".join(
        f"- step: e{edition}_s{number}\n  tool: {tool}\n"
        + (f"  next: {{arcs: [{{step: e{edition}_s{number + 1}}}]}}\n" if number < length - 1 else "")
        for number in range(length)
    )


def loop(count: int, tool: str, edition: int = 0) -> str:
    """A parallel loop."""
    items = f'"{{{{ range({edition}, {edition + count}) | list }}}}"'
    spec = f"spec: {{mode: parallel, max_in_flight: {FLIGHT}}}"
    return f"- step: e{edition}_loop\n  loop: {{in: {items}, iterator: item, {spec}}}\n  tool: {tool}\n"
