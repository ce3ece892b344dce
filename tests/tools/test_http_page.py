"""The page on the HTTP tool shows what the tool does."""

import json
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from noetl.tools.http.pool import _MAX_JARS
from noetl.tools.http.tool import MAX_BODY, MAX_FILE, MAX_REDIRECTS
from tests.pages import block_of
from tests.playbooks import problems_of
from tests.tools.http_calls import call, run

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "http.md").read_text("utf-8")


def test_the_example_loads_and_gives_the_result_that_is_shown() -> None:
    assert problems_of("workload: { token: t }\nworkflow:\n" + block_of(PAGE, "yaml")) == ()
    (task,) = yaml.safe_load(block_of(PAGE, "yaml"))[0]["tool"]
    example: dict[str, Any] = json.loads(block_of(PAGE, "json"))

    async def handler(_request: web.Request) -> web.Response:
        return web.json_response(example["data"], status=example["status"])

    inputs = {key: task[key] for key in ("method", "params", "headers", "json", "auth", "spec")}
    (outcome,), (seen,) = run(handler, call("/orders", **inputs))
    result = outcome.result
    assert set(result) == set(example)
    assert {key: result[key] for key in ("status", "status_code", "data")} == {
        key: example[key] for key in ("status", "status_code", "data")
    }
    assert example["headers"].items() <= result["headers"].items()
    assert example["url"] == task["url"] + seen.target.removeprefix("/orders")
    assert json.loads(seen.body) == task["json"]


def test_the_limits_are_those_of_the_tool() -> None:
    amounts = (
        f"{MAX_BODY >> 20} MiB",
        f"{MAX_FILE >> 30} GiB",
        f"{MAX_REDIRECTS} redirects",
        f"{_MAX_JARS:,} runs",
    )
    assert [amount for amount in amounts if amount not in PAGE] == []
