"""Where a playbook is run, what `validate` warns about is said, too: once."""

from pathlib import Path

import noetl
from tests.cli.command_line import CompletedCommand, run

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: w, path: test/{path}, version: "{version}"}}
workflow:
  - step: start
    tool: {tool}
    next: {{arcs: [{{step: load, when: "{{{{ event.name == 'step.dnoe' }}}}"}}]}}
  - step: load
    tool: {{kind: noop}}
"""
NOOP = "{kind: noop, args: {rows: 3}}"
FAILING = "{kind: python, code: raise ValueError}"
WARNING = "warning dead-arc"


def write(folder: Path, path: str, tool: str = NOOP, *, version: int = 1, file: str = "") -> Path:
    (folder / ".noetl").mkdir(exist_ok=True)
    target = folder / (file or f"{path}.yaml")
    target.write_text(PLAYBOOK.format(path=path, tool=tool, version=version))
    return target


def warned_files(ran: CompletedCommand) -> list[str]:
    return [line.split(":")[0] for line in ran.err.splitlines() if WARNING in line]


def test_run_says_on_stderr_what_validate_says(folder: Path) -> None:
    write(folder, "w")
    validated = run("validate", "w.yaml", cwd=folder)
    paragraph = validated.out.partition("\n\n")[0]
    ran = run("run", "w.yaml", cwd=folder)
    assert (ran.code, ran.out) == (0, "rows: 3\n")
    assert paragraph.startswith("w.yaml:7:")
    assert ran.err.startswith(paragraph + "\nexecution ")
    assert ran.err.count(WARNING) == 1


def test_quiet_still_warns_unless_json_does(folder: Path) -> None:
    write(folder, "w")
    quiet = run("run", "w.yaml", "-q", cwd=folder)
    assert (quiet.out, warned_files(quiet)) == ("rows: 3\n", ["w.yaml"])
    problems = run("validate", "w.yaml", "-o", "json", cwd=folder).json["problems"]
    loud = run("run", "w.yaml", "-o", "json", cwd=folder)
    assert (loud.json["warnings"], warned_files(loud)) == (problems, ["w.yaml"])
    silent = run("run", "w.yaml", "-q", "-o", "json", cwd=folder)
    assert (silent.json["warnings"], silent.err) == (problems, "")


def test_a_playbook_without_warnings_has_none(folder: Path) -> None:
    assert run("run", "greet.yaml", "-q", "-o", "json", cwd=folder).json["warnings"] == []


def test_a_dry_run_warns(folder: Path) -> None:
    write(folder, "w")
    text = run("run", "w.yaml", "--dry-run", cwd=folder)
    assert (text.code, warned_files(text)) == (0, ["w.yaml"])
    planned = run("run", "w.yaml", "--dry-run", "-o", "json", cwd=folder)
    assert [problem["code"] for problem in planned.json["warnings"]] == ["dead-arc"]
    assert planned.err == ""


def test_children_are_warned_about_once(folder: Path) -> None:
    child = write(folder, "child")
    # Another version of the child has the same path, and is not the one that runs.
    write(folder, "child", '{kind: noop, args: {other: "{{ ctx.nowhere }}"}}', version=2, file="other.yaml")
    write(folder, "w", f"[{', '.join(['{kind: playbook, path: test/child, version: 1}'] * 2)}]")
    ran = run("run", "w.yaml", "-o", "json", cwd=folder)
    assert ran.code == 0, ran
    assert warned_files(ran) == ["w.yaml", str(child)]
    assert [problem["file"] for problem in ran.json["warnings"]] == ["w.yaml", str(child)]


def test_a_child_whose_path_is_computed_is_warned_about_when_it_starts(folder: Path) -> None:
    child = write(folder, "child")
    write(folder, "w", "{kind: playbook, path: \"{{ 'test/' ~ 'child' }}\", version: 1}")
    ran = run("run", "w.yaml", "-q", cwd=folder)
    assert (ran.code, warned_files(ran)) == (0, ["w.yaml", str(child)])


def test_a_playbook_that_starts_itself_is_warned_about_once(folder: Path) -> None:
    write(folder, "w", "{kind: playbook, path: test/w}")
    ran = run("run", "w.yaml", "-q", cwd=folder)
    assert "executions start one another" in ran.err
    assert warned_files(ran) == ["w.yaml"]


def test_a_document_in_a_document_is_warned_about_where_it_stands(folder: Path) -> None:
    inner = (
        "{kind: playbook, document: {apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: i, path: i}, "
        "workflow: [{step: start, tool: {kind: noop, args: {a: '{{ ctx.nowhere }}'}}}]}}"
    )
    write(folder, "w", inner)
    ran = run("run", "w.yaml", cwd=folder)
    assert ran.err.count("nothing sets `ctx.nowhere`") == 1
    assert [line.split(":")[0] for line in ran.err.splitlines() if "warning " in line] == ["w.yaml"] * 2


def test_resume_retry_and_fork_warn_too(folder: Path) -> None:
    write(folder, "w", FAILING)
    failed = run("run", "w.yaml", cwd=folder)
    assert (failed.code, warned_files(failed)) == (1, ["w.yaml"])
    again = run("executions", "retry", "latest", "-o", "json", cwd=folder)
    assert (again.code, warned_files(again)) == (1, ["w.yaml"])
    assert [problem["code"] for problem in again.json["warnings"]] == ["dead-arc"]
    resumed = run("run", "--resume", "latest", "-q", cwd=folder)
    assert warned_files(resumed) == ["w.yaml"]
    recorded = run("executions", "fork", "latest", "--at", "3", "--no-run", cwd=folder)
    assert (recorded.code, warned_files(recorded)) == (0, ["w.yaml"])
    write(folder, "w", file="mended.yaml")
    forked = run("executions", "fork", "latest", "--at", "3", "--playbook", "mended.yaml", cwd=folder)
    assert (forked.code, warned_files(forked)) == (0, ["mended.yaml"])


def test_a_repaired_playbook_is_warned_about_and_not_what_it_was(folder: Path) -> None:
    write(folder, "w", FAILING)
    assert run("run", "w.yaml", cwd=folder).code == 1
    write(folder, "w", "{kind: python, code: result = 1}", file="mended.yaml")
    retried = run("executions", "retry", "latest", "--playbook", "mended.yaml", "-o", "json", cwd=folder)
    assert (retried.code, warned_files(retried)) == (0, ["mended.yaml"])
    assert [problem["file"] for problem in retried.json["warnings"]] == ["mended.yaml"]


def test_show_has_the_warnings_in_json(folder: Path) -> None:
    write(folder, "w")
    ran = run("run", "w.yaml", "-q", "-o", "json", cwd=folder)
    details = run("executions", "show", "latest", "-o", "json", cwd=folder)
    assert details.json["warnings"] == ran.json["warnings"] != []


def test_python_gets_the_warnings_with_the_execution(folder: Path) -> None:
    child = write(folder, "child")
    parent = write(folder, "w", "{kind: playbook, path: test/child}")
    execution = noetl.run(parent, store="sqlite:///:memory:")
    assert [(problem.file, problem.code) for problem in execution.warnings] == [
        (str(parent), "dead-arc"),
        (str(child), "dead-arc"),
    ]
    assert noetl.load(parent).warnings == tuple(execution.warnings[:1])


WORKLOAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: t, path: test/t}
workload: {api: a, db: {host: h}}
workflow:
  - step: start
    tool: {kind: noop, args: {api: "{{ workload.api }}", region: "{{ workload.region | default(1) }}"}}
"""


def unread(ran: CompletedCommand) -> list[tuple[str, str]]:
    assert ran.code == 0, ran
    return [(problem["message"], problem["hint"]) for problem in ran.json["warnings"]]


def test_a_value_that_the_playbook_has_no_use_for_is_warned_about(folder: Path) -> None:
    (folder / "t.yaml").write_text(WORKLOAD)
    sets = ["--set", "apii=1", "--set", "elsewhere=1", "--set", "db.hsot=1", "--set", "db.zone=1"]
    ran = run("run", "t.yaml", "-o", "json", *sets, "--set", "region=2", "--set", "api=1", cwd=folder)
    assert unread(ran) == [
        ("nothing reads `workload.apii`", "did you mean `api`?"),
        ("nothing reads `workload.elsewhere`", "`test/t` has no use for it"),
        ("nothing reads `workload.db.hsot`", "did you mean `host`?"),
    ]
    assert ran.err.startswith(
        "<request>:1:1  warning unread-workload  nothing reads `workload.apii`\n  hint: "
    )
    planned = run("run", "t.yaml", "--dry-run", "-o", "json", "--payload", '{"apii": 1}', cwd=folder)
    assert unread(planned) == [("nothing reads `workload.apii`", "did you mean `api`?")]
    text = run("run", "t.yaml", "--dry-run", "--set", "apii=1", cwd=folder)
    assert "nothing reads `workload.apii`" in text.err
    execution = noetl.run(folder / "t.yaml", {"apii": 1}, store="sqlite:///:memory:")
    assert [problem.message for problem in execution.warnings] == ["nothing reads `workload.apii`"]


def test_a_fork_with_another_value_is_looked_at_too(folder: Path) -> None:
    (folder / ".noetl").mkdir()
    (folder / "t.yaml").write_text(WORKLOAD)
    assert run("run", "t.yaml", "-q", cwd=folder).err == ""
    forked = run("executions", "fork", "latest", "--at", "2", "--set", "apii=1", "-o", "json", cwd=folder)
    assert unread(forked) == [("nothing reads `workload.apii`", "did you mean `api`?")]


def test_a_workload_that_is_handed_on_whole_may_have_any_key(folder: Path) -> None:
    sets = ["--set", "elsewhere=1", "--set", "nmae=x"]
    ran = run("run", "greet.yaml", "-q", "-o", "json", *sets, cwd=folder)
    assert unread(ran) == [("nothing reads `workload.nmae`", "did you mean `name`?")]
