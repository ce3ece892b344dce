"""Scripts of `python` tasks that come from a web server."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.tools.python.tool import PythonTool
from tests.tools.http_calls import Handler, answer, serving
from tests.tools.python_calls import call, kind_and_message

CODE = "def main(a):\n    return 10 / a\n"


def fetched(handler: Handler, script: Any, args: dict[str, Json] | None = None, **options: Any) -> Outcome:
    """The outcome of a script, in whose address `URL` is where the server is."""

    async def scenario() -> Outcome:
        tool = PythonTool()
        async with serving(handler) as server:
            at = _replaced(script, server.url)
            try:
                return await tool.run(call(script=at, args=args or {"a": 4}, **options))
            finally:
                await tool.close()

    return asyncio.run(scenario())


def _replaced(value: Any, url: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, url) for key, item in value.items()}
    return value.replace("URL", url) if isinstance(value, str) else value


@pytest.mark.parametrize(
    "script",
    [
        "URL/jobs/clean.py",
        {"uri": "URL/jobs/clean.py"},
        {"uri": "URL/jobs/clean.py", "source": {"type": "http"}},
        {"source": {"type": "http", "endpoint": "URL/jobs/clean.py"}},
        {"uri": "clean", "source": {"type": "http", "endpoint": "URL/jobs/clean.py"}},
    ],
)
@pytest.mark.parametrize("content_type", ["text/x-python", "application/octet-stream"])
def test_a_script_is_fetched(script: Json, content_type: str) -> None:
    handler = answer(body=CODE.encode(), content_type=content_type)
    assert fetched(handler, script).result == 2.5
    failed = fetched(handler, script, args={"a": 0})
    assert 'File "clean.py", line 2, in main' in failed.helpers["py"]["traceback"]


def test_a_script_is_asked_for_with_headers_and_a_credential() -> None:
    async def guarded(request: web.Request) -> web.Response:
        if (request.headers.get("Authorization"), request.headers.get("X-Team")) != ("Bearer t", "a"):
            raise web.HTTPForbidden
        return web.Response(text="result = 'in'")

    source: Json = {"type": "http", "headers": {"X-Team": "a"}, "auth": {"type": "bearer", "token": "t"}}
    assert fetched(guarded, {"uri": "URL/x.py", "source": source}).result == "in"
    assert kind_and_message(fetched(guarded, "URL/x.py"))[0] == "http_status"


def test_a_script_may_be_asked_for_otherwise_and_for_less_time() -> None:
    async def posted(request: web.Request) -> web.Response:
        return web.Response(text=f"result = '{request.method}'")

    source: Json = {"type": "http", "method": "POST", "timeout": 20}
    assert fetched(posted, {"uri": "URL/x.py", "source": source}).result == "POST"

    async def hanging(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    late = fetched(hanging, {"uri": "URL/x.py", "source": {"type": "http", "timeout": 0.05}})
    kind, message = kind_and_message(late)
    assert (kind, "no whole answer within 0.05 s" in message) == ("timeout", True), message


def test_an_empty_script_gives_nothing() -> None:
    assert fetched(answer(), "URL/x.py").status == "ok"


@pytest.mark.parametrize(
    ("handler", "kind", "retryable", "message"),
    [
        (answer(status=404), "http_status", False, "the script cannot be fetched: GET http://127.0.0.1:"),
        (answer(status=503), "http_status", True, "503"),
        (answer(text="[1]", content_type="application/json"), "input", False, "is JSON, and no Python"),
        (answer(body=b"x = '\xe4'"), "input", False, "the script `x.py` is not UTF-8"),
        (answer(body=b"#" * (17 << 20)), "limit", False, "the body is longer than 16,777,216 bytes"),
        (answer(text="def"), "python", False, "SyntaxError"),
    ],
)
def test_a_script_that_cannot_be_had_is_told(
    handler: Handler, kind: str, retryable: bool, message: str
) -> None:
    outcome = fetched(handler, "URL/x.py")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == (kind, retryable)
    assert message in outcome.error.message


def test_a_script_that_does_not_come_in_time_is_told() -> None:
    async def never(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    kind, message = kind_and_message(fetched(never, "URL/x.py", timeout=0.3))
    assert (kind, "within 0.3 s" in message) == ("timeout", True)
