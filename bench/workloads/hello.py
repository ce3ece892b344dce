"""W6: `noetl run` of hello world from the shell, beside what the interpreter alone takes."""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.protocol import Recorder
from bench.workload_table import BARE

HELLO = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: hello, path: hello}
workflow:
- step: start
  tool: {kind: noop, args: {message: "Hello, world!"}}
"""


def measure_hello(recorder: Recorder) -> int:
    """The most memory that one `noetl run` took, in bytes."""
    noetl = str(Path(sys.executable).with_name("noetl"))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hello.yaml").write_text(HELLO, "utf-8")
        for _ in recorder.shots():
            with recorder.lap(BARE):
                subprocess.run([sys.executable, "-c", "pass"], cwd=folder, check=True)
            with recorder.lap():
                done = subprocess.run(
                    [noetl, "run", "hello.yaml"], cwd=folder, check=True, capture_output=True, text=True
                )
            recorder.check(done.stdout.count("Hello, world!"))
    # The largest of the children that have ended: `python -c pass` is smaller.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
