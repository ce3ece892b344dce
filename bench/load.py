"""How long a large playbook takes to load and check.

The playbook has 1,000 steps and about 1 MB of text. Every step has expressions of its own, because
equal ones are parsed once. Each measurement is a process of its own: nothing is warm but the disk.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measurement import Measurement

STEPS = 1_000
BYTES = 1_000_000
RUNS = 3

_CHILD = """
import json, sys, time
started = time.perf_counter()
from pathlib import Path
from noetl.loader import examine
imported = time.perf_counter()
idle = time.process_time()
text = Path(sys.argv[1]).read_text("utf-8")
loaded = examine(text, "large.yaml")
finished = time.perf_counter()
assert loaded.playbook is not None, loaded.problems[:3]
work = time.process_time() - idle
print(json.dumps({"import": imported - started, "load": finished - imported, "work": work}))
"""


_PARSE = """
import json, sys, time
from noetl.expr.expression import parse
texts = json.load(sys.stdin)
began = time.process_time()
for text in texts:
    parse(text)
print(time.process_time() - began)
"""

_IN_USE = (
    (r"(?m)^          args:", "          set:"),
    (r"(?m)^        args:", "        input:"),
    (r"\boutcome\.result\.data\.", "output.data."),
    (r"\boutcome\.", "output."),
    (r"\b_prev\.data\.", "output.data."),
    (r"'(?:step|loop)\.done'", "'call.done'"),
    (r"\bset_ctx:", "set:"),
)
"""What stands in the canonical document, and what is written for it in use."""

EXPRESSIONS = (
    "{{ outcome.status == 'error' and outcome.http.status in [429, 500, N] }}",
    "{{ (iter.page | int) + N }}",
    "{{ workload.api_url }}/N/{{ iter.endpoint.path }}",
    "{{ outcome.result.data.pagingN.hasMore | default(false) }}",
    "{{ event.name == 'step.done' and ctx.n != N }}",
)


def large_playbook(steps: int = STEPS, size: int = BYTES) -> str:
    """A chain of steps with retries, loops and branches, padded with descriptions to `size` bytes."""
    header = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: large, path: bench/large }\n"
    header += "workload: { api_url: 'http://127.0.0.1', items: [1, 2, 3] }\nworkflow:\n"
    parts = [_step(number, steps) for number in range(steps)]
    padding = max(0, (size - len(header) - sum(map(len, parts))) // steps - 13)
    text = "lorem ipsum dolor sit amet ".ljust(27) * (padding // 27 + 1)
    return header + "".join(part.replace("PADDING", text[:padding]) for part in parts)


def _step(number: int, steps: int) -> str:
    name = "start" if number == 0 else f"step_{number}"
    following = f"step_{number + 1}" if number + 1 < steps else ""
    loop = ""
    item = f"workload.items[{number % 3}]"
    done = "step.done"
    if number % 5 == 4:
        loop = f'    loop: {{ in: "{{{{ workload.items + [{number}] }}}}", iterator: item }}\n'
        item, done = "iter.item", "loop.done"
    arcs = (
        f"""    next:
      arcs:
        - step: {following}
          when: "{{{{ event.name == '{done}' and execution_id != 'x{number}' }}}}"
          args: {{ previous: "{{{{ event.result }}}}", number: {number} }}
"""
        if following
        else ""
    )
    return f"""  - step: {name}
    desc: PADDING
{loop}    tool:
      - name: fetch
        kind: http
        method: GET
        url: "{{{{ workload.api_url }}}}/items/{number}/{{{{ {item} }}}}"
        params: {{ page: {number}, size: "{{{{ workload.size | default({number}) }}}}" }}
        spec:
          policy:
            rules:
              - when: "{{{{ outcome.status == 'error' and outcome.http.status in [429, {500 + number}] }}}}"
                then: {{ do: retry, attempts: 5, backoff: exponential, delay: 2 }}
              - when: "{{{{ outcome.status == 'error' }}}}"
                then: {{ do: fail }}
              - else:
                  then:
                    do: continue
                    set_ctx: {{ total_{number}: "{{{{ outcome.result.data.total + {number} }}}}" }}
      - name: shape
        kind: python
        args: {{ rows: "{{{{ _prev.data.rows[{number}:] }}}}" }}
        code: |
          result = {{"rows": rows, "number": {number}}}
{arcs}"""


def large_playbook_in_use() -> str:
    """The same playbook as the language is in use."""
    text = large_playbook()
    for canonical, in_use in _IN_USE:
        text = re.sub(canonical, in_use, text)
    return text


def measure_load() -> Iterator[Measurement]:
    text = large_playbook()
    with tempfile.TemporaryDirectory() as folder:
        path, twin = Path(folder) / "large.yaml", Path(folder) / "in_use.yaml"
        path.write_text(text, "utf-8")
        twin.write_text(large_playbook_in_use(), "utf-8")
        # In turns, so that both meet the same machine.
        runs = [(_run(path), _run(twin)) for _ in range(RUNS)]
        best = min((own for own, _ in runs), key=lambda seconds: seconds["load"])
        ratio = min(other["work"] for _, other in runs) / min(own["work"] for own, _ in runs)
    yield Measurement("load: text", len(text.encode()) / 1e6, "MB")
    yield Measurement("load: import", best["import"], "s")
    yield Measurement("load: 1,000 steps, loaded and checked", best["load"], "s", "under 2")
    yield Measurement("load: the same as the language is in use", ratio, "times", "at most 1.5")


def measure_parse() -> Iterator[Measurement]:
    """What one expression costs to read and analyse; the texts all differ, because equal ones are shared."""
    texts = [source.replace("N", str(number)) for number in range(800) for source in EXPRESSIONS]
    done = subprocess.run(
        [sys.executable, "-c", _PARSE], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    yield Measurement("load: one expression, read and analysed", float(done.stdout) / len(texts) * 1e6, "µs")


def _run(path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)], capture_output=True, text=True, check=True
    )
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds
