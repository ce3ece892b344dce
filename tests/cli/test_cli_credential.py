"""`noetl credential`: what it keeps, shows and refuses."""

import json
from pathlib import Path

import pytest

from tests.cli.command_line import run

SET = ("credential", "set", "db", "--kind", "postgres_credential")


def test_a_credential_is_set_shown_listed_and_deleted(tmp_path: Path) -> None:
    env = {"PASSWORD": "hunter2hunter2"}
    ran = run(
        *SET,
        "--field",
        "host=h",
        "--field",
        "port=5432",
        "--field-from-env",
        "password=PASSWORD",
        cwd=tmp_path,
        env=env,
    )
    assert (ran.code, ran.out) == (0, "db: stored\n")
    assert "made the key" in ran.err
    credential = run("credential", "show", "db", "-o", "json", cwd=tmp_path).json
    assert credential["fields"] == {"host": "h", "port": 5432, "password": "***"}
    assert (
        run("credential", "show", "db", "--reveal", "-o", "json", cwd=tmp_path).json["fields"]["password"]
        == "hunter2hunter2"
    )
    text = run("credential", "show", "db", cwd=tmp_path)
    assert "password: ***" in text.out
    assert "hunter2" not in text.out
    (listed,) = run("credential", "list", "-o", "json", cwd=tmp_path).json["credentials"]
    assert (listed["name"], listed["kind"]) == ("db", "postgres_credential")
    assert run("credential", "list", cwd=tmp_path).out.startswith("db  postgres_credential  2")
    assert run("credential", "delete", "db", "-o", "json", cwd=tmp_path).json == {
        "name": "db",
        "deleted": True,
    }
    empty = run("credential", "list", cwd=tmp_path)
    assert (empty.code, empty.out, empty.err) == (0, "", "no credentials are stored\n")


def test_fields_come_from_standard_input_too(tmp_path: Path) -> None:
    fields_text = json.dumps({"data": {"a": [1]}, "url": "https://u:hidden-one@h/"})
    ran = run(
        "credential", "set", "s", "--stdin", "--field", "b=x", "-o", "json", cwd=tmp_path, stdin=fields_text
    )
    assert ran.json["kind"] == "static"
    assert "so short" in ran.err
    fields = run("credential", "show", "s", "-o", "json", cwd=tmp_path).json["fields"]
    assert fields == {"data": {"a": ["***"]}, "url": "https://u:***@h/", "b": "***"}


def test_the_key_is_replaced(tmp_path: Path) -> None:
    run(*SET, "--field", "password=long enough", cwd=tmp_path)
    key = (tmp_path / ".noetl" / "key").read_text()
    ran = run("credential", "rotate-key", "-o", "json", cwd=tmp_path)
    assert ran.json == {"credentials": 1, "key_file": str(tmp_path / ".noetl" / "key")}
    assert (tmp_path / ".noetl" / "key").read_text() != key
    ran = run("credential", "rotate-key", "--new-key-file", "mine", cwd=tmp_path)
    assert ran.out == f"1 credential: the key is new, in {tmp_path / 'mine'}\n"
    assert run("credential", "show", "db", cwd=tmp_path).code == 3
    rotated = run(
        "credential", "show", "db", "--reveal", "-o", "json", cwd=tmp_path, env={"NOETL_KEY_FILE": "mine"}
    )
    assert rotated.json["fields"] == {"password": "long enough"}
    text = (tmp_path / "mine").read_text()
    assert run("credential", "show", "db", cwd=tmp_path, env={"NOETL_KEY": text}).code == 0
    config = run("config", "show", "-o", "json", cwd=tmp_path, env={"NOETL_KEY": text})
    assert config.json["settings"]["key"]["value"] == "***"


def test_a_key_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    there = tmp_path / ".noetl" / "key"
    gone = tmp_path / "gone" / "key"
    refused = run(*SET, "--field", "a=long enough", cwd=tmp_path, env={"NOETL_KEY_FILE": str(gone)})
    assert (refused.code, refused.out) == (3, "")
    assert f"the key {gone} cannot be written: No such file or directory" in refused.err
    refused = run("credential", "rotate-key", cwd=tmp_path, env={"NOETL_KEY_FILE": str(gone)})
    assert (refused.code, refused.err) == (
        3,
        f"noetl: {gone.parent} cannot be read: No such file or directory\n",
    )
    assert run(*SET, "--field", "a=long enough", cwd=tmp_path).code == 0
    same = run("credential", "rotate-key", "--new-key-file", str(there), cwd=tmp_path)
    assert (same.code, same.out) == (3, "")
    assert f"the key in {there} is the one in use" in same.err
    new = run("credential", "rotate-key", "--new-key-file", "new", cwd=tmp_path)
    assert (new.code, "NOETL_KEY_FILE must name that file" in new.err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "message"),
    [
        (("set", "x"), "", 2, "`x` would have no fields"),
        (("set", "x", "--field", "S3CRET"), "", 2, "--field takes FIELD=VALUE"),
        (("set", "x", "--field-from-env", "a=ABSENT"), "", 2, "the variable ABSENT is not set"),
        (("set", "x", "--stdin"), '"S3CRET"', 2, "--stdin takes a JSON mapping"),
        (("set", "x", "--stdin"), "{S3CRET", 2, "--stdin takes a JSON mapping"),
        (("set", "x", "--kind", "vault", "--field", "path=p"), "", 2, "says where a value is"),
        (("set", "x", "--kind", "bearr", "--field", "a=b"), "", 2, "there is no kind `bearr`"),
        (("set", "x", "--kind", "basic", "--field", "user=b"), "", 2, "has no field `user`"),
        (("set", "", "--field", "a=b"), "", 2, "the name of a credential is text of one line"),
        (("set", "a\nb", "--field", "a=b"), "", 2, "the name of a credential is text of one line"),
        (("set", "x", "--field", "a="), "", 2, "the field `a` would be empty"),
        (("set", "x", "--field", "a=S3CRET", "--field", "a=b"), "", 2, "the field `a` is given twice"),
        (("set", "x", "--stdin"), '{"a":' * 5000 + "1" + "}" * 5000, 2, "--stdin takes a JSON mapping"),
        (("set", "x", "--stdin"), '{"a": NaN, "S3CRET": 1}', 2, "--stdin takes a JSON mapping"),
        (("set", "x", "--stdin"), r'{"S3CRET": "\ud800"}', 2, "--stdin takes a JSON mapping"),
        (("set", "x", "--kind", "bearer", "--stdin"), '{"token": ["S3CRET"]}', 2, "a value of another type"),
        (("show", "x"), "", 2, "there is no credential `x`"),
        (("delete", "x"), "", 2, "there is no credential `x`"),
        (("rotate-key",), "", 2, "there are no credentials here yet"),
        (("list", "--store", "sqlite:///:memory:"), "", 0, ""),
        (("set", "x", "--field", "a=b", "--store", "sqlite:///:memory:"), "", 2, "a store in memory"),
    ],
)
def test_what_is_wrong_is_told(
    arguments: tuple[str, ...], stdin: str, code: int, message: str, tmp_path: Path
) -> None:
    ran = run("credential", *arguments, cwd=tmp_path, stdin=stdin)
    assert ran.code == code
    assert message in ran.err
    assert "S3CRET" not in ran.err + ran.out
