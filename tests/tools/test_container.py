"""The kind `container`, with a program that speaks the command line of Docker, and with Podman where it is."""

import asyncio
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noetl.tools.container.kind import check
from noetl.tools.container.tool import ContainerTool
from tests.tools.calls import call_of
from tests.tools.container_runtime import ContainerRuntime


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ContainerRuntime]:
    runtime = ContainerRuntime(tmp_path)
    monkeypatch.setenv("PATH", f"{runtime.programs}:/usr/bin:/bin")
    monkeypatch.setenv("CONTAINERS", str(runtime.home))
    yield runtime
    assert runtime.containers == []  # whatever happened


def test_a_container_gives_what_it_prints_and_its_lines_go_to_the_log(runtime: ContainerRuntime) -> None:
    lines: list[str] = []
    outcome = runtime.outcome(
        command=["sh", "-c", "echo out; echo err >&2; cat"], stdin="in", log=lines.append
    )
    assert outcome.result == {"exit_code": 0, "stdout": "out\nin", "stderr": "err\n"}
    assert sorted(lines) == ["err", "in", "out"]
    assert "--interactive" in runtime.last_run["options"]


def test_a_text_is_run_by_a_shell_of_the_image_and_none_is_the_images_own(runtime: ContainerRuntime) -> None:
    outcome = runtime.outcome(command="echo $((1 + 1))")
    assert (outcome.result or {})["stdout"] == "2\n"
    assert runtime.last_run["command"] == ["sh", "-c", "echo $((1 + 1))"]
    assert "--interactive" not in runtime.last_run["options"]
    runtime.outcome(image="elsewhere")
    assert runtime.last_run["command"] == []


@pytest.mark.parametrize("as_list", [False, True])
def test_variables_are_a_mapping_or_a_list_and_no_argument_shows_their_values(
    runtime: ContainerRuntime, monkeypatch: pytest.MonkeyPatch, as_list: bool
) -> None:
    monkeypatch.setenv("FROM_WORKER", "w")
    env: Any = {"TOKEN": "a=b\nc", "N": 5, "YES": True, "HOME": "/inside"}
    if as_list:
        env = ["TOKEN=a=b\nc", "N=5", "YES=true", "HOME=/inside", "FROM_WORKER", "NOWHERE_SET"]
    outcome = runtime.outcome(command='echo "$TOKEN $N $YES $HOME $FROM_WORKER"', env=env)
    worker = "w" if as_list else ""
    assert outcome.result == {"exit_code": 0, "stdout": f"a=b\nc 5 true /inside {worker}\n", "stderr": ""}
    env_options = [option for option in runtime.last_run["options"] if option.startswith("--env=")]
    assert env_options[:4] == ["--env=TOKEN", "--env=N", "--env=YES", "--env=HOME=/inside"]
    assert len(env_options) == (5 if as_list else 4)


def test_mounts_limits_and_the_rest_reach_the_runtime(runtime: ContainerRuntime) -> None:
    runtime.outcome(
        command=["true"],
        mounts=[
            "./data:/data:ro",
            "cache:/cache",
            {"source": "/etc", "target": "/e", "read_only": True},
            {"volume": "v", "target": "/v"},
        ],
        entrypoint="",
        cwd="/data",
        user=1000,
        spec={
            "memory": "1MB",
            "cpus": 0.5,
            "processes": 10,
            "network": "none",
            "pull": "never",
            "timeout": 5,
        },
    )
    options = runtime.last_run["options"]
    assert options[0].startswith("--name=noetl-")
    assert options[1:] == [
        "--label=noetl",
        "--quiet",
        "--pull=never",
        f"--mount=type=bind,source={runtime.work.resolve()}/data,target=/data,readonly",
        "--mount=type=volume,source=cache,target=/cache",
        "--mount=type=bind,source=/etc,target=/e,readonly",
        "--mount=type=volume,source=v,target=/v",
        "--entrypoint=",
        "--workdir=/data",
        "--user=1000",
        "--memory=1000000b",
        "--memory-swap=1000000b",
        "--cpus=0.5",
        "--pids-limit=10",
        "--network=none",
    ]


def test_an_exit_code_and_a_lack_of_memory_are_told_apart(runtime: ContainerRuntime) -> None:
    outcome = runtime.outcome(command="echo why >&2; exit 125")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.message) == (
        "process_exit",
        "the command ended with exit code 125: why",
    )
    assert outcome.error.details == {"exit_code": 125}
    outcome = runtime.outcome(image="hungry", command="echo before", spec={"memory": "64MB"})
    assert outcome.error is not None
    assert outcome.error.kind == "limit"
    assert outcome.error.message == "the container was out of memory: it needs more than 64MB"
    assert outcome.error.details == {"exit_code": 137, "out_of_memory": True}
    assert outcome.result == {"exit_code": 137, "stdout": "before\n", "stderr": ""}
    kind, message, _ = runtime.error(command="kill -9 $$")
    assert (kind, message) == ("process_exit", "the command ended with exit code 137")


@pytest.mark.parametrize(
    ("inputs", "failure"),
    [
        ({"image": "absent"}, ("not_found", "No such image: absent", False)),
        ({"image": "unreachable"}, ("connection", "Cannot connect to the Docker daemon", True)),
        ({"command": ["no-such-program"]}, ("not_found", "executable file not found", False)),
        ({"spec": {"runtime": "kubernetes"}}, ("input", "`spec`: Invalid enum value", False)),
        ({"mounts": ["/a"]}, ("input", "`/a` is no mount", False)),
        ({"image": "--privileged"}, ("input", "`--privileged` is no image", False)),
    ],
)
def test_what_hinders_a_container_is_named(
    runtime: ContainerRuntime, inputs: dict[str, Any], failure: tuple[str, str, bool]
) -> None:
    kind, message, retryable = runtime.error(**inputs)
    assert (kind, retryable) == (failure[0], failure[2])
    assert failure[1] in message


def test_without_a_runtime_the_error_names_what_would_do(
    runtime: ContainerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(runtime.work))
    for spec, missing in ((None, "`docker` or `podman`"), ({"runtime": "podman"}, "`podman`")):
        message = f"the worker has no {missing}: install it, or put it on the `PATH`"
        assert runtime.error(spec=spec) == ("not_found", message, False)


def test_podman_is_used_where_docker_is_not(
    runtime: ContainerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(runtime.programs / "docker", runtime.programs / "podman")
    monkeypatch.setenv("PATH", str(runtime.programs))
    assert runtime.outcome(command=["/bin/echo", "a"]).status == "ok"


def test_podman_gives_no_more_time_to_a_container_that_is_removed(runtime: ContainerRuntime) -> None:
    spec = {"runtime": "podman"}
    runtime.install("podman")
    runtime.outcome(command="true", spec=spec)
    assert runtime.last_removal == ["--force", "--time=0", "--volumes"]
    podman = runtime.programs / "podman"
    old = podman.read_text().replace("exec", 'case "$*" in *--time*) exit 125;; esac; exec')
    podman.write_text(old)  # as before version 4, which does not know the option
    runtime.outcome(command="true", spec=spec)
    assert runtime.last_removal == ["--force", "--volumes"]
    runtime.outcome(command="true")
    assert runtime.last_removal == ["--force", "--volumes"]


@pytest.mark.parametrize(
    ("mounts", "messages"),
    [
        (["a:/b", "./a:/b:rw", "{{ folder }}:/b"], []),
        (["a"], ["`a` is no mount"]),
        (["a:/b:wild"], ["`a:/b:wild` is no mount"]),
        (["a:b"], ["the target `b` is no absolute path"]),
        ([{"target": "/b"}], ["`source` or `volume` is missing"]),
        (
            [{"source": "x,y", "target": "/b"}],
            ["`x,y` has a comma, a quote or a line end"],
        ),
    ],
)
def test_mounts_are_checked_before_anything_runs(mounts: list[Any], messages: list[str]) -> None:
    assert [fault.message for fault in check({"image": "i", "mounts": mounts}, {})] == messages


def _wait_for_end(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 60)[0]
    finally:
        os.close(handle)


def test_a_container_ends_with_the_time_of_its_task(runtime: ContainerRuntime) -> None:
    (runtime.work / "pid").touch()
    command = f"trap '' TERM; echo $$ >{runtime.work}/pid; sleep 300 & wait; wait"
    kind, message, retryable = runtime.error(command=command, timeout=1)
    assert (kind, message, retryable) == ("timeout", "the command was not done within 1 s", True)
    _wait_for_end(int((runtime.work / "pid").read_text()))


def test_a_container_may_tidy_up_when_its_task_is_cancelled(runtime: ContainerRuntime) -> None:
    async def run() -> None:
        begun = asyncio.Event()
        tool = ContainerTool(grace=30)
        command = "trap 'touch tidied; exit' TERM; echo begun; while :; do sleep 0.01; done"
        call = call_of(
            "container",
            {"image": "host", "command": command},
            folder=runtime.work,
            log=lambda _: begun.set(),
        )
        running = asyncio.create_task(tool.run(call))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await tool.close()

    asyncio.run(run())
    assert Path(runtime.work / "tidied").exists()


def test_a_container_ends_with_its_worker_however_that_ends(runtime: ContainerRuntime) -> None:
    code = (
        "import asyncio, pathlib\n"
        "from noetl.tools.container.tool import ContainerTool\n"
        "from tests.tools.calls import call_of\n"
        "call = call_of('container', {'image': 'host', 'command': 'echo $$; sleep 300'},"
        " log=lambda line: print(line, flush=True))\n"
        "asyncio.run(ContainerTool().run(call))\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root
    ) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        worker.kill()
    _wait_for_end(pid)
    while runtime.containers:  # the one that removes it is at work
        os.sched_yield()
