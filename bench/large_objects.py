"""Passes a large file through playbooks, and says how much memory the largest process took.

    python -m bench.large_objects [--gigabytes 1] [--only file,artifact,s3,http,duckdb,tables]

Each route is one `noetl run` in a folder of its own. The limit is 400 MB for every process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.s3_server import s3_server

LIMIT = 400_000_000
CHUNK_BYTES = 1 << 20
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: large, path: bench/large}\n"

ROUTES = {
    "file": """
  - get: {kind: file, action: get, url: large.bin}
  - put: {kind: file, action: put, url: out.bin, source: "{{ get }}"}
""",
    "artifact": """
  - get: {kind: file, action: get, url: large.bin}
  - put: {kind: artifact, action: put, key: large, content: "{{ get }}", spec: {result: {compression: zstd}}}
  - again: {kind: artifact, action: get, key: large}
  - out: {kind: file, action: put, url: out.bin, source: "{{ again }}"}
""",
    "s3": """
  - put: {kind: s3, action: put, url: "s3://noetl-tests/large.bin", source: large.bin}
  - get: {kind: s3, action: get, url: "s3://noetl-tests/large.bin"}
  - out: {kind: file, action: put, url: out.bin, source: "{{ get }}"}
""",
    "http": """
  - get: {kind: http, url: "URL", spec: {save_as: file, timeout: 600}}
  - out: {kind: file, action: put, url: out.bin, source: "{{ get.data }}"}
""",
    "duckdb": """
  - rows:
      kind: duckdb
      query: "SELECT i AS id, repeat(md5(i::VARCHAR), 3) AS text FROM range(ROWS) t(i)"
  - out: {kind: file, action: put, url: out.bin, content: "{{ rows.rows }}", format: parquet}
""",
    "tables": """
  - rows:
      kind: duckdb
      query: "SELECT i AS id, repeat(md5(i::VARCHAR), 3) AS text FROM range(ROWS) t(i)"
  - again: {kind: duckdb, query: "SELECT count(*) AS n, max(text) AS last FROM \\"rows\\""}
  - count:
      kind: python
      args: {table: "{{ rows.rows }}", again: "{{ again.rows[0].n }}"}
      spec: {tables: arrow}
      code: "assert table.num_rows == again"
""",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(ROUTES))
    options = parser.parse_args()
    size = int(options.gigabytes * 1_000_000_000)
    ok = True
    with tempfile.TemporaryDirectory(prefix="noetl-large-") as folder:
        for name in options.only.split(","):
            ok = _run_route(name, Path(folder, name), size) and ok
    return 0 if ok else 1


def _run_route(name: str, folder: Path, size: int) -> bool:
    folder.mkdir()
    text = ROUTES[name].replace("ROWS", str(size // 110))
    environment = dict(os.environ)
    with ExitStack() as stack:
        if name == "s3":
            server = stack.enter_context(s3_server())
            environment |= server.environment
            environment |= {"AWS_ENDPOINT": server.endpoint, "AWS_REGION": "us-east-1"}
        if name == "http":
            text = text.replace("URL", stack.enter_context(_serve_bytes(size)))
        if name in ("file", "artifact", "s3"):
            _write(folder / "large.bin", size)
        spec = "executor: {kind: local, spec: {task_timeout: 1800}}\n"
        (folder / "large.yaml").write_text(f"{HEAD}{spec}workflow:\n- step: start\n  tool:{text}")
        began = time.perf_counter()
        code, peak_bytes = _run(
            [sys.executable, "-m", "noetl", "run", "large.yaml", "-o", "json"], folder, environment
        )
        seconds = time.perf_counter() - began
    out = folder / "out.bin"
    complete = code == 0 and (name in ("duckdb", "tables") or out.stat().st_size == size)
    verdict = "ok" if complete and peak_bytes < LIMIT else "FAILED"
    print(
        json.dumps(
            {"route": name, "ok": verdict, "seconds": round(seconds, 1), "peak_mb": peak_bytes // 1_000_000}
        )
    )
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    return complete and peak_bytes < LIMIT


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, int]:
    """The exit code, and the bytes that the largest process of the command took at most."""
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    peak_bytes = 0
    while process.poll() is None:
        peak_bytes = max(peak_bytes, *(_peak(pid) for pid in _process_tree(process.pid)))
        time.sleep(0.05)
    return process.returncode, peak_bytes


def _process_tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        child_pids = [int(child) for child in children.read_text().split()]
    except OSError:
        child_pids = []
    return [pid, *(descendant for child in child_pids for descendant in _process_tree(child))]


def _peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for _ in range(size // CHUNK_BYTES):
            file.write(os.urandom(CHUNK_BYTES // 4) * 4)
        file.write(b"\0" * (size % CHUNK_BYTES))


@contextmanager
def _serve_bytes(size: int) -> Iterator[str]:
    """The address of a server that sends so many bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()
            left = size
            while left:
                left -= self.wfile.write(b"\1" * min(CHUNK_BYTES, left))

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/large.bin"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    sys.exit(main())
