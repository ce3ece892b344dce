"""Where settings come from, and which one wins."""

from pathlib import Path

import pytest

from noetl.settings import Settings, SettingsWrong, read_settings
from tests.cli.command_line import VALID, run


def test_every_setting_is_shown_with_its_origin(tmp_path: Path) -> None:
    ran = run("config", "show", cwd=tmp_path)
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == list(Settings.__struct_fields__)
    assert all(line.endswith("default") for line in ran.out.splitlines() if not line.startswith("color"))


def test_flags_beat_environment_beats_dotenv_beats_toml(tmp_path: Path) -> None:
    def origin(*flags: str, **env: str) -> str:
        settings = run("config", "show", *flags, cwd=tmp_path, env={"NOETL_OUTPUT": "json", **env}).json[
            "settings"
        ]
        return str(settings["output"]["source"]) if flags else str(settings["allow_kinds"]["source"])

    assert origin() == "default"
    (tmp_path / "noetl.toml").write_text('allow_kinds = ["from_toml"]\noutput = "text"\n')
    assert origin() == "noetl.toml"
    (tmp_path / ".env").write_text("OTHER=1\nexport NOETL_ALLOW_KINDS='from, dotenv' # why\n")
    assert origin() == ".env"
    assert origin(NOETL_ALLOW_KINDS="from_env") == "env"
    assert origin("-o", "json") == "flag"


def test_the_nearest_file_counts_up_to_the_home_directory(tmp_path: Path) -> None:
    deep = tmp_path / "home" / "project" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "home" / "noetl.toml").write_text("debug = true\n")
    home = {"HOME": str(tmp_path / "home")}
    assert read_settings(environment=home, directory=deep).settings.debug is False
    (tmp_path / "home" / "project" / "noetl.toml").write_text("debug = true\n")
    configuration = read_settings(environment=home, directory=deep)
    assert configuration.settings.debug is True
    assert configuration.origins["debug"].where == str(tmp_path / "home" / "project" / "noetl.toml")
    assert read_settings(environment=home, directory=tmp_path / "home").settings.debug is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOETL_DEBUG=1", True),
        ("NOETL_DEBUG = yes", True),
        ('export NOETL_DEBUG="true" # because', True),
        ("NOETL_DEBUG=on # because", True),
        ("NOETL_DEBUG=off", False),
        ("NOETL_DEBUG=", False),
        ("# NOETL_DEBUG=1", False),
        ("MY_NOETL_DEBUG=1", False),
    ],
)
def test_dotenv_lines(text: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"A='\n{text}\n")
    assert read_settings(environment={}, directory=tmp_path).settings.debug is expected


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("noetl.toml", 'output = "xml"', "text, json"),
        ("noetl.toml", 'debug = "perhaps"', "true or false"),
        ("noetl.toml", 'allow_kinds = "a"', "a list of names"),
        ("noetl.toml", "alow_kinds = []", "did you mean `allow_kinds`?"),
        ("noetl.toml", "zzz = 1", "allow_kinds, output"),
        ("noetl.toml", "slots = 0", "a whole number, 1 or more"),
        ("noetl.toml", 'slots = "8"', "a whole number, 1 or more"),
        (".env", "NOETL_SLOTS=many", "a whole number, 1 or more"),
        (".env", "NOETL_KEEP_DAYS=-1", "a whole number, 0 or more"),
        ("noetl.toml", "home = 1", "`home` cannot be 1"),
        ("noetl.toml", "not toml", "noetl.toml"),
        (".env", "NOETL_OUTPUT=xml", "text, json"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(file: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text + "\n")
    ran = run("config", "show", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert file in ran.err
    assert message in ran.err
    assert run("validate", "-o", "json", "x.yaml", cwd=tmp_path).json["error"]["code"] == "settings"


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    ran = run("config", "show", cwd=tmp_path, env={"NOETL_OUTPUT": "xml"})
    assert ran.code == 2
    assert "NOETL_OUTPUT: `output` cannot be 'xml'" in ran.err


def test_settings_files_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsWrong, match="UTF-8"):
        read_settings(environment={}, directory=tmp_path)


def test_numbers_come_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "noetl.toml").write_text("slots = 4\nkeep_days = 7\n")
    settings = read_settings(environment={"NOETL_SLOTS": " 8 "}, directory=tmp_path).settings
    assert (settings.slots, settings.keep_days) == (8, 7)
    assert (
        read_settings({"slots": 16}, environment={"NOETL_SLOTS": "8"}, directory=tmp_path).settings.slots
        == 16
    )


def settings_shown(directory: Path, **env: str) -> dict[str, str]:
    settings = run("config", "show", "-o", "json", cwd=directory, env=env).json["settings"]
    return {name: settings[name]["value"] for name in ("home", "store")}


def test_the_home_is_the_nearest_one_unless_it_is_set(tmp_path: Path) -> None:
    deep = tmp_path / "project" / "deep"
    deep.mkdir(parents=True)
    here = {"HOME": str(tmp_path)}
    assert settings_shown(deep, **here)["home"] == str(deep / ".noetl")
    (tmp_path / ".noetl").mkdir()
    assert settings_shown(deep, **here)["home"] == str(deep / ".noetl")
    (tmp_path / "project" / ".noetl").mkdir()
    assert settings_shown(deep, **here)["home"] == str(tmp_path / "project" / ".noetl")
    assert not (deep / ".noetl").exists()
    settings = settings_shown(deep, **here, NOETL_HOME="runs")
    assert settings == {"home": str(deep / "runs"), "store": f"sqlite:///{deep}/runs/store.db"}
    assert settings_shown(deep, **here, NOETL_STORE="sqlite:///x.db")["store"] == "sqlite:///x.db"


def test_the_home_or_store_that_is_said_nearer_takes_the_place_of_the_other(tmp_path: Path) -> None:
    (tmp_path / "noetl.toml").write_text('store = "sqlite:///toml.db"\n')
    assert settings_shown(tmp_path)["store"] == "sqlite:///toml.db"
    assert settings_shown(tmp_path, NOETL_HOME="runs")["store"] == f"sqlite:///{tmp_path}/runs/store.db"
    both = {"NOETL_HOME": "runs", "NOETL_STORE": "sqlite:///env.db"}
    assert settings_shown(tmp_path, **both)["store"] == "sqlite:///env.db"
    (tmp_path / "valid.yaml").write_text(VALID)
    assert run("run", "valid.yaml", "--home", "flag", cwd=tmp_path, env=both).code == 0
    assert (tmp_path / "flag" / "store.db").is_file()
    words = ["executions", "list", "--home", "flag", "--store", "sqlite:///flag.db", "-o", "json"]
    refused = run(*words, cwd=tmp_path)
    assert (refused.code, refused.json["error"]["message"]) == (2, "--home and --store exclude each other")
