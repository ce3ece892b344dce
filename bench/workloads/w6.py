import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measurement import Measurement
from bench.workloads.engine import DURABLE

HELLO = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: hello, path: hello}
workflow:
- step: start
  tool: {kind: noop, args: {message: "Hello, world!"}}
"""


def run() -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hello.yaml").write_text(HELLO, "utf-8")
        took = min(_once(folder) for _ in range(5))
    return Measurement(
        "`noetl run` of hello world from the shell", took, "ms", goal="under 500 ms", durability=DURABLE
    )


def _once(folder: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [str(Path(sys.executable).with_name("noetl")), "run", "hello.yaml"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return (time.perf_counter() - began) * 1e3
