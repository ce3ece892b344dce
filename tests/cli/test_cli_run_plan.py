"""`noetl run --dry-run`: the plan, and what cannot run."""

from pathlib import Path

from tests.cli.command_line import run
from tests.cli.run_playbooks import GREET, HEADER


def test_a_dry_run_shows_the_plan_and_leaves_nothing(folder: Path) -> None:
    ran = run("run", "greet.yaml", "--dry-run", "--set", "deep.b=x", cwd=folder)
    assert ran.code == 0
    assert "    b: x\n" in ran.out
    assert "  start\n    say  python\n" in ran.out
    plan = run("run", "greet.yaml", "--dry-run", "-o", "json", cwd=folder).json
    assert (plan["playbook"], plan["entry"]) == ("test/it", "start")
    assert plan["workload"] == {"name": "World", "deep": {"a": 1, "b": 2}}
    assert plan["steps"][0]["tasks"] == [{"task": "say", "kind": "python", "line": 8}]
    assert plan["cannot_run"] == []
    assert not (folder / ".noetl").exists()


PLANNED = HEADER + (
    "keychain: [{name: token, kind: env}]\n"
    "executor: {kind: local, spec: {final_step: last}}\n"
    "workload: {pages: 3, url: 'http://example.org/{{ workload.pages }}'}\n"
    "workflow:\n"
    "  - step: start\n"
    "    desc: Get them\n"
    "    loop: {in: '{{ range(workload.pages) | list }}', iterator: page, spec: {mode: parallel}}\n"
    "    tool:\n"
    "      - {name: get, kind: http, url: '{{ workload.url }}', auth: other}\n"
    "      - {name: odd, kind: telegraph, key: '{{ keychain.token }}'}\n"
    "    next: {arcs: [{step: end, when: \"{{ event.name == 'loop.done' }}\"}, {step: end}]}\n"
    "  - step: end\n"
    "    spec: {policy: {join: all, admit: {on_deny: drop, rules: [{when: '{{ ctx.ok }}', then: {allow: true}}]}}}\n"
    "    tool: {kind: noop}\n"
    "  - step: last\n"
    "    tool: {kind: noop}\n"
)


def test_a_plan_has_loops_arcs_credentials_and_what_cannot_run(folder: Path) -> None:
    arguments = ["run", "-", "--dry-run", "--allow-kind", "telegraph"]
    plan = run(*arguments, "-o", "json", cwd=folder, stdin=PLANNED).json
    assert plan["workload"] == {"pages": 3, "url": "http://example.org/3"}
    assert plan["keychain"] == [{"name": "other"}, {"name": "token", "kind": "env"}]
    assert [(task["task"], task["kind"]) for task in plan["cannot_run"]] == [("odd", "telegraph")]
    start, end, _ = plan["steps"]
    assert start["loop"]["max_in_flight"] == 10
    assert start["arcs"] == [
        {"step": "end", "when": "{{ event.name == 'loop.done' }}"},
        {"step": "end", "when": True},
    ]
    assert (end["join"], end["on_deny"]) == ("all", "drop")
    text = run(*arguments, cwd=folder, stdin=PLANNED).out
    for line in (
        "  token  env",
        "  other  from the credential store",
        "  step start, task odd: the tool kind `telegraph` is not installed",
        "  start  (Get them)",
        "    for page in {{ range(workload.pages) | list }}, parallel, up to 10 at a time",
        "    → end  when {{ event.name == 'loop.done' }}",
        "  end  (joins all; is guarded, else drop)",
        "  last  (runs at the end)",
    ):
        assert f"{line}\n" in text


def test_defaults_that_cannot_be_rendered_are_a_wrong_request(folder: Path) -> None:
    text = GREET.replace("name: World", "name: '{{ workload.none.x }}'")
    ran = run("run", "-", "--dry-run", "-o", "json", cwd=folder, stdin=text)
    assert (ran.code, ran.json["error"]["code"]) == (2, "expression")


def test_what_is_missing_is_found_before_anything_runs(folder: Path) -> None:
    text = HEADER + (
        "workflow:\n"
        "  - step: start\n"
        "    tool:\n"
        "      - {name: odd, kind: telegraph}\n"
        "      - {name: child, kind: playbook, path: not/here}\n"
    )
    (folder / "odd.yaml").write_text(text)
    ran = run("run", "odd.yaml", "--allow-kind", "telegraph", cwd=folder)
    assert (ran.code, ran.out) == (2, "")
    assert "odd.yaml:7:" in ran.err
    assert "the tool kind `telegraph` is not installed" in ran.err
    assert "there is no playbook `not/here`" in ran.err
    assert "    7 |       - {name: odd" in ran.err
    as_json = run("run", "odd.yaml", "--allow-kind", "telegraph", "-o", "json", cwd=folder)
    assert (as_json.code, as_json.json["error"]["code"], len(as_json.json["problems"])) == (
        2,
        "cannot-run",
        2,
    )


def test_a_plan_names_modules_that_are_missing(folder: Path) -> None:
    text = HEADER + (
        "workflow:\n"
        "  - step: start\n"
        "    tool: {name: clean, kind: python, libs: {m: json, n: no_such_module}, code: 'result = 1'}\n"
    )
    ran = run("run", "-", "--dry-run", "-o", "json", cwd=folder, stdin=text)
    (task,) = ran.json["cannot_run"]
    assert (task["step"], task["task"], task["kind"]) == ("start", "clean", "python")
    assert task["reason"] == "`libs` names the module `no_such_module`, which is not installed"
    assert run("run", "-", cwd=folder, stdin=text).code == 2
