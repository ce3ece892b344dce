"""Speaks the command line of Docker as far as the tool uses it; a container is a process of its own session.

As with Docker, who kills the command line does not kill the container. `CONTAINERS` names the folder that
stands for the daemon. Images: `host` runs its command, `hungry` is out of memory, any other is not there.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

_HOME = Path(os.environ["CONTAINERS"])


def run(arguments: list[str]) -> int:
    position = next(i for i, argument in enumerate(arguments) if not argument.startswith("--"))
    options, image, command = arguments[:position], arguments[position], arguments[position + 1 :]
    values = dict(option[2:].partition("=")[::2] for option in options)
    env = [option.removeprefix("--env=") for option in options if option.startswith("--env=")]
    (_HOME / "last.json").write_text(json.dumps({"options": options, "image": image, "command": command}))
    if image == "unreachable":
        return _refuse(
            "Cannot connect to the Docker daemon at unix:///nowhere. Is the docker daemon running?"
        )
    if image not in ("host", "hungry"):
        return _refuse(f"Error response from daemon: No such image: {image}")
    folder = _HOME / values["name"]
    folder.mkdir()
    if shutil.which(command[0]) is None:
        (folder / "state").write_text('{"Status": "created", "OOMKilled": false}')
        _refuse(f'Error response from daemon: exec: "{command[0]}": executable file not found in $PATH')
        return 127
    pairs = (variable.partition("=") for variable in env)
    full = {name: value if equals else os.environ[name] for name, equals, value in pairs}
    signal.signal(signal.SIGTERM, lambda *_: os.kill(int((folder / "pid").read_text()), signal.SIGTERM))
    _start(folder, command, {"PATH": os.environ["PATH"], **full}, oom=image == "hungry")
    while not (folder / "state").exists():
        time.sleep(0.005)
    return int(json.loads((folder / "state").read_text())["ExitCode"])


def _refuse(reason: str) -> int:
    sys.stderr.write(f"docker: {reason}\n\nRun 'docker run --help' for more information\n")
    return 125


def _start(folder: Path, command: list[str], env: dict[str, str], *, oom: bool) -> None:
    """Nobody's child: the process between the two ends at once."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    pid = os.fork()
    if not pid:
        _write(folder / "pid", str(os.getpid()))  # before it can print: then it may be stopped
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.execvpe(command[0], command, env)  # noqa: S606 - as a runtime does
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 137 if oom else code if code >= 0 else 128 - code
    _write(folder / "state", json.dumps({"Status": "exited", "OOMKilled": oom, "ExitCode": code}))
    os._exit(0)


def _write(path: Path, text: str) -> None:
    if path.parent.exists():
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)


def inspect(arguments: list[str]) -> int:
    assert arguments[:2] == ["--type=container", "--format={{json .State}}"]
    state = _HOME / arguments[2] / "state"
    if not state.exists():
        return 1
    sys.stdout.write(state.read_text())
    return 0


def rm(arguments: list[str]) -> int:
    (_HOME / "removal.json").write_text(json.dumps(arguments[:-1]))
    folder = _HOME / arguments[-1]
    if not folder.exists():
        return 1
    if (folder / "pid").exists() and not (folder / "state").exists():
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit({"run": run, "inspect": inspect, "rm": rm}[sys.argv[1]](sys.argv[2:]))
