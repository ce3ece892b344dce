"""`scripts/test` without arguments: all checks at once, in a project whose tools say only that they ran."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSED = {
    "ruff": "echo ruff $*",
    "mypy": "echo mypy",
    "lint-imports": "echo imports",
    "pytest": "echo 3 passed",
}
COVERAGE = "branch coverage of model, events, expr, dsl and kernel by their tests with given examples: 91 %\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The scripts, with a folder for temporary files of their own. There are a page, a browser and a MariaDB."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    write_program(folder / "scripts" / "web", 'touch "$(dirname "$0")/../page"')
    write_program(folder / "programs" / "chromium", "")
    write_program(folder / "programs" / "mariadbd", "")
    (folder / "pyproject.toml").write_text("")
    (folder / "temporary").mkdir()
    return folder


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def prepare(project: Path, tools: Mapping[str, str]) -> Path:
    """A `.venv` that is ready, with these programs for the shell."""
    for name, text in {**tools, "python": 'exec .venv/bin/pytest "$@"', "coverage": "echo 91"}.items():
        write_program(project / ".venv" / "bin" / name, text)
    setup = f'root={project}; . "$root/scripts/setup"; is_ready() {{ :; }}; prepare test; printf %s "$wanted"'
    stamp = subprocess.run(["sh", "-c", setup], check=True, capture_output=True, text=True).stdout
    (project / ".venv" / ".ready-test").write_text(stamp)
    return project / "scripts" / "test"


def environment(project: Path) -> dict[str, str]:
    path = f"{project / 'programs'}:{os.environ['PATH']}"
    chosen = {"NOETL_TEST_BROWSER", "NOETL_TEST_MARIADB"}
    own = {name: value for name, value in os.environ.items() if name not in chosen}
    return {**own, "TMPDIR": str(project / "temporary"), "PATH": path}


def check(project: Path, tools: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(prepare(project, tools)), *arguments]
    ran = subprocess.run(
        command,
        env=environment(project),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not list((project / "temporary").iterdir())
    return ran


def test_every_check_shows_what_it_says(project: Path) -> None:
    ran = check(project, PASSED)
    assert (ran.returncode, ran.stderr) == (0, "")
    output, duration = ran.stdout.rsplit("\n\n", 1)
    assert output == (
        f"\n== pytest\n3 passed\n{COVERAGE}\n== ruff check\nruff check\n\n== ruff format --check\nruff format --check\n"
        "\n== mypy\nmypy\n\n== lint-imports\nimports"
    )
    assert re.fullmatch(r"pytest took 0 min \d\d s\n", duration)


def test_tests_have_a_folder_of_their_own_which_nobody_finds_afterwards(project: Path) -> None:
    """In memory, where there is some, unless it is said where."""
    script = prepare(project, {**PASSED, "pytest": 'echo "$*"'})
    for chosen in ("", str(project / "temporary")):
        variables = {**environment(project), "TMPDIR": chosen}
        ran = subprocess.run([script], env=variables, capture_output=True, text=True, check=True)
        base = re.search(r" --basetemp=(\S+) ", ran.stdout)
        assert base, ran.stdout
        folder = Path(base[1]).parent
        assert not folder.exists()
        memory = Path("/dev/shm")  # noqa: S108 - it is only looked at
        if chosen:
            assert folder.parent == Path(chosen)
        elif memory.is_dir() and shutil.disk_usage(memory).free > 5 << 30:
            assert folder.parent == memory


def test_with_arguments_only_pytest_runs(project: Path) -> None:
    ran = check(project, {**PASSED, "pytest": 'echo "$*"'}, "-k", "one or two")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "-m pytest -k one or two\n", "")


@pytest.mark.parametrize(
    ("arguments", "built"),
    [((), True), (("tests/web",), True), (("-k", "web"), False), (("--no-browser",), False)],
)
def test_the_page_is_built_for_its_tests(arguments: tuple[str, ...], built: bool, project: Path) -> None:
    ran = check(project, PASSED, *arguments)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (project / "page").exists() == built


def test_tests_that_need_what_is_not_installed_are_left_out_if_that_is_said(project: Path) -> None:
    tools = {**PASSED, "pytest": 'echo "${NOETL_TEST_BROWSER-} ${NOETL_TEST_MARIADB-} $*"'}
    for flags, left_out in ((["--no-mariadb"], " no "), (["--no-mariadb", "--no-browser"], "no no ")):
        ran = check(project, tools, *flags, "-k", "x")
        assert (ran.returncode, ran.stdout) == (0, f"{left_out}-m pytest -k x\n")


@pytest.mark.parametrize("package", ["chromium-headless-shell", "chromium"])
def test_a_browser_is_installed_where_there_is_none(package: str, project: Path) -> None:
    """The first package that the system has."""
    programs = project / "programs"
    (programs / "chromium").unlink()
    write_program(programs / "id", "echo 0")
    browser = f"printf '#!/bin/sh' >{programs}/{package}; chmod +x {programs}/{package}"
    write_program(programs / "apt-get", f'case " $* " in *" {package} "*) {browser} ;; *) exit 100 ;; esac')
    tools = ("awk", "cat", "chmod", "cksum", "cut", "date", "df", "dirname", "mktemp", "rm", "sh", "touch")
    for tool in tools:
        (programs / tool).symlink_to(shutil.which(tool) or "")
    command = [str(prepare(project, PASSED)), "tests/web"]
    variables = {**environment(project), "PATH": str(programs)}
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "3 passed\n")
    tried = ("chromium-headless-shell", "chromium")[: 1 + (package == "chromium")]
    assert ran.stderr == "".join(
        f"noetl: installing {name} fonts-dejavu-core, for the tests of the page\n" for name in tried
    )
    assert (programs / package).exists()


def test_a_page_that_cannot_be_built_ends_the_run_with_what_to_do(project: Path) -> None:
    write_program(project / "scripts" / "web", "exit 1")
    ran = check(project, PASSED)
    assert ran.returncode != 0
    assert "--no-browser leaves them out" in ran.stderr


@pytest.mark.parametrize("broken", [[name] for name in PASSED] + [["mypy", "pytest"]])
def test_a_failure_stops_no_other_check_and_is_told_at_the_end(broken: list[str], project: Path) -> None:
    ran = check(project, {**PASSED, **{name: f"echo broken {name} >&2; exit 7" for name in broken}})
    stages = ["pytest", "ruff check", "ruff format --check", "mypy", "lint-imports"]
    failed = [stage for stage in stages if stage.split()[0] in broken]
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == f"failed: {', '.join(failed)}"
    assert [line[3:] for line in ran.stdout.splitlines() if line.startswith("== ")] == stages
    for name, text in PASSED.items():
        assert (f"broken {name}" if name in broken else text.split()[1]) in ran.stdout + ran.stderr


def test_the_others_run_while_pytest_does_and_are_shown_when_it_is_done(project: Path) -> None:
    """A pipe is opened when both ends are: pytest waits for what mypy says, and mypy for pytest."""
    os.mkfifo(project / "pipe")
    tools = {
        **PASSED,
        "mypy": "echo from mypy >pipe; echo mypy",
        "pytest": "echo before; cat pipe; echo 3 passed",
    }
    ran = check(project, tools)
    assert ran.returncode == 0
    assert f"\n== pytest\nbefore\nfrom mypy\n3 passed\n{COVERAGE}\n== ruff check\n" in ran.stdout


@pytest.mark.parametrize(
    ("send", "signum", "code"), [(os.killpg, signal.SIGINT, 130), (os.kill, signal.SIGTERM, 143)]
)
def test_ctrl_c_and_a_polite_end_end_all_of_them(
    send: Callable[[int, int], None], signum: int, code: int, project: Path
) -> None:
    """They are in the background of a shell, where Ctrl-C does not reach."""
    os.mkfifo(project / "pipe")
    hang = "exec sleep 1000"
    tools = {**PASSED, "mypy": f"echo $$ >pipe; {hang}", "pytest": f"cat pipe; echo $$; {hang}"}
    with subprocess.Popen(
        [prepare(project, tools)],
        env=environment(project),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as shell:
        assert shell.stdout
        lines = iter(shell.stdout.readline, "")
        numbers = (int(line) for line in lines if line.strip().isdigit())
        children = [next(numbers), next(numbers)]
        send(shell.pid, signum)
        assert not list(lines)
        assert shell.wait() == code
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    assert not list((project / "temporary").iterdir())
