"""A large object passes through the tools without being held."""

import json
import subprocess
import sys
from pathlib import Path

from bench.s3_server import S3Server

SIZE = 96 << 20
MOST = 48 << 20


def test_a_large_object_is_never_held_whole(tmp_path: Path, s3: S3Server) -> None:
    with (tmp_path / "large.bin").open("wb") as file:
        for number in range(SIZE >> 20):
            file.write(bytes([number]) * (1 << 20))
    command = [sys.executable, str(Path(__file__).with_name("memory_child.py")), str(tmp_path), str(SIZE)]
    ran = subprocess.run(
        [*command, json.dumps(s3.auth), s3.bucket], check=False, capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < MOST
