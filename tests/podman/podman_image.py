"""An image for tests with Podman, made of what this machine has: nothing is fetched."""

import io
import re
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path

IMAGE = "localhost/noetl-test:latest"


def _archive() -> bytes:
    """A file system with nothing but a shell and its libraries."""
    libraries = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=False).stdout
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", dereference=True) as archive:
        for path in ("/bin/sh", *re.findall(r"/\S+", libraries)):
            archive.add(Path(path).resolve(), arcname=path)
    return content.getvalue()


@cache
def why_podman_is_not_used() -> str | None:
    """None if it runs containers here, with a limit of memory."""
    podman = shutil.which("podman")
    if podman is None:
        return "is not installed"
    limits = ["--network=none", "--memory=16m", "--memory-swap=16m"]
    commands = [
        ([podman, "import", "-", IMAGE], _archive()),
        ([podman, "run", "--rm", "--pull=never", *limits, IMAGE, "/bin/sh", "-c", "exit 0"], b""),
    ]
    for command, stdin in commands:
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return "does not answer"
        if done.returncode:
            return "does not run containers here"
    return None
