"""Where `noetl executions` looks: what cannot be a store, what may not be written, words that mean nothing."""

from pathlib import Path

import pytest

from tests.executions.execution_playbooks import GREET, GREETED, HOLD
from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import RecordedExecutions
from tests.file_rights import readable_only


@pytest.mark.parametrize("verb", ["list", "prune", "show x", "events x", "logs x", "cancel x", "retry x"])
@pytest.mark.parametrize(
    ("where", "message"),
    [
        (["--home", "file"], "file is no folder"),
        (["--store", "sqlite:///file/x.db"], "file is no folder"),
        (["--store", "sqlite:///folder"], "folder is no file"),
    ],
)
def test_what_cannot_be_a_store_is_not_an_empty_one(
    noetl: InProcessCommand, tmp_path: Path, verb: str, where: list[str], message: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    ran = noetl("executions", *verb.split(), *where)
    assert (ran.code, ran.out) == (3, "")
    assert message in ran.err
    assert "--home or --store names another place" in ran.err


def test_looking_at_an_empty_file_makes_no_store_of_it(noetl: InProcessCommand, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert noetl("executions", "list", "--store", "sqlite:///empty.db").err == "no executions\n"
    assert noetl("executions", "show", "latest", "--store", "sqlite:///empty.db").code == 2
    assert (tmp_path / "empty.db").read_bytes() == b""
    assert len([*tmp_path.iterdir()]) == 1


def test_a_store_whose_path_is_not_utf8_is_refused(noetl: InProcessCommand) -> None:
    ran = noetl("executions", "list", "--home", "\udcff")
    assert ran.code == 3
    assert "is not UTF-8, as the path of a store must be" in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "\udcff"], "'ID': it is not UTF-8"),
        (["show", ""], "'ID': it is empty"),
        (["list", "--path", "\udcff"], "'--path': it is not UTF-8"),
        (["list", "--label", "a=\udcff"], "'--label': it is not UTF-8"),
        (["list", "--since", ""], "--since: `` is not a time"),
        (["prune", "--before", ""], "--before: `` is not a time"),
        (["signal", "latest", ""], "'SIGNAL': it is empty"),
        (["signal", "latest", "\udcff"], "'SIGNAL': it is not UTF-8"),
        (["cancel", "latest", "--reason", "\udcff"], "'--reason': it is not UTF-8"),
        (["fork", "latest", "--at", "3", "--dialect", "draft"], "--dialect says how --playbook is read"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    noetl: InProcessCommand, recorded: RecordedExecutions, words: list[str], message: str
) -> None:
    recorded.run(GREET, GREETED)
    ran = noetl("executions", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_no_event_that_is_wanted_is_said(
    noetl: InProcessCommand, recorded: RecordedExecutions, follow: list[str]
) -> None:
    recorded.run(GREET, GREETED)
    ran = noetl("executions", "events", "latest", "--step", "none", *follow)
    assert (ran.code, ran.out, ran.err) == (0, "", "no such events\n")
    words = ["executions", "events", "latest", "--step", "none", "-o", "json", *follow]
    assert noetl(*words).err == ""


@pytest.mark.parametrize(
    "words",
    [
        *(["executions", verb, "latest"] for verb in ("show", "events", "logs", "watch", "replay", "verify")),
        ["executions", "result", "latest"],
        ["executions", "list"],
        ["executions", "prune", "--dry-run", "--before", "2200-01-01"],
        ["store", "check"],
    ],
    ids=" ".join,
)
def test_a_store_that_may_not_be_written_can_be_looked_at(
    noetl: InProcessCommand, public_folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    recorded = RecordedExecutions(public_folder)
    recorded.run(HOLD)
    recorded.run(GREET, GREETED)
    monkeypatch.chdir(public_folder)
    public_folder.chmod(0o755)
    usual = noetl(*words)
    assert noetl("executions", "cancel", "latest").code == 2
    before = sorted(recorded.home.folder.iterdir())
    with readable_only(recorded.home.folder):
        ran = noetl(*words)
        refused = noetl("executions", "cancel", "latest")
    assert usual.code == 0
    assert ran == usual
    assert refused.code == 3
    assert "cannot be" in refused.err
    assert sorted(recorded.home.folder.iterdir()) == before
