"""`noetl.tool`: functions and classes as tool kinds."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

import noetl
from noetl.dsl.document.kind_reference import reference_of
from noetl.dsl.document.kinds import Fault, KindTaken, TaskSpec
from noetl.loader import installed_kinds, schema
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo
from noetl.ports.tool import Call
from noetl.tools.declaration import ToolRefused
from noetl.tools.host.worker_tools import Tools
from tests.playbooks import problem_positions, problems_of, task
from tests.tools.declared_calls import error_of, kind_named, outcome_of, run
from tests.tools.python_calls import call


class Size(Struct, frozen=True, forbid_unknown_fields=True):
    """How large."""

    wide: int
    high: int = 1


def declare_parcel() -> None:
    @noetl.tool("parcel", effect="pure", result="What was sent.", example="kind: parcel\nto: Bern\n")
    async def parcel(
        to: Annotated[str, Meta(description="Where it goes.")],
        weight: Annotated[float, Meta(ge=0)] = 1.0,
        size: Size | None = None,
        tags: list[str] = ["plain"],  # noqa: B006 - a default is never changed
        speed: Literal["slow", "fast"] = "slow",
        *,
        from_: str = "here",
        more: Any = None,
    ) -> dict[str, object]:
        """Sends a parcel.

        There is more to say about it.
        """
        wide = size.wide if size else None
        return {
            "to": to,
            "weight": weight,
            "wide": wide,
            "tags": tags,
            "speed": speed,
            "from": from_,
            "more": more,
        }


def test_a_function_is_explained_like_any_other_kind() -> None:
    declare_parcel()
    kind = installed_kinds().get("parcel")
    assert kind is not None
    assert (kind.summary, kind.result) == ("Sends a parcel.", "What was sent.")
    assert problems_of(task(kind.example)) == ()
    fields = {entry.name: (entry.type, entry.default) for entry in reference_of(kind).inputs}
    assert fields == {
        "to": ("text", ""),
        "weight": ("number ≥ 0", "1.0"),
        "size": ("mapping", ""),
        "size.wide": ("whole number", ""),
        "size.high": ("whole number", "1"),
        "tags": ("list of text", '["plain"]'),
        "speed": ("`fast`, `slow`", '"slow"'),
        "from": ("text", '"here"'),
        "more": ("value", ""),
    }


@pytest.mark.spec("000 §2.4")
def test_the_parameters_of_a_function_are_its_inputs() -> None:
    declare_parcel()
    assert problems_of(task("kind: parcel\nto: Bern\nfrom: Oslo\nsize: { wide: 3 }")) == ()
    assert [problem.code for problem in problem_positions(task("kind: parcel\nto: Bern\nspeed: fats"))] == [
        "bad-value"
    ]
    assert [problem.code for problem in problem_positions(task("kind: parcel\nto: Bern\nwight: 2"))] == [
        "unknown-key"
    ]
    assert [problem.code for problem in problem_positions(task("kind: parcel\nto: [Bern]"))] == ["wrong-type"]
    assert [
        problem.code for problem in problem_positions(task("kind: parcel\nto: Bern\nsize: { high: 2 }"))
    ] == ["missing-key"]
    (missing,) = problems_of(task("kind: parcel"))
    assert (missing.code, missing.hint) == ("missing-key", "add `to:`, where it goes")


def test_the_schema_knows_a_declared_kind() -> None:
    declare_parcel()
    inputs = schema()["$defs"]["parcel task"]  # type: ignore[index, call-overload]  # a JSON Schema
    assert {"to", "from", "size"} <= set(inputs["properties"])  # type: ignore[index, call-overload, arg-type]  # likewise
    assert kind_named("parcel").summary == "Sends a parcel."
    assert kind_named("parcel").effect == "pure"


def test_a_function_is_called_with_typed_inputs_and_its_own_defaults() -> None:
    declare_parcel()
    outcome = outcome_of("parcel", to="Bern", size={"wide": 3}, **{"from": "Oslo"})
    assert outcome.error is None
    assert outcome.result == {
        "to": "Bern", "weight": 1.0, "wide": 3, "tags": ["plain"], "speed": "slow", "from": "Oslo", "more": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "Object missing required field `to`"),
        ({"to": 7}, "Expected `str`, got `int` - at `$.to`"),
        ({"to": "Bern", "weight": -1}, "Expected `float` >= 0.0 - at `$.weight`"),
        ({"to": "Bern", "other": 1}, "Object contains unknown field `other`"),
    ],
)
def test_rendered_inputs_are_checked_before_the_function_runs(inputs: dict[str, Json], message: str) -> None:
    declare_parcel()
    assert error_of("parcel", **inputs) == ErrorInfo(kind="input", message=message)


def test_a_function_stays_a_function() -> None:
    @noetl.tool("double")
    async def double(number: int) -> int:
        return number * 2

    assert asyncio.run(double(4)) == 8


def test_a_parameter_may_take_the_call() -> None:
    lines: list[str] = []

    @noetl.tool("tell")
    async def tell(attempt: Call, args: dict[str, Any] | None = None) -> list[object]:
        attempt.log("told")
        return [attempt.idempotency_key, args]

    assert set(kind_named("tell").inputs.__struct_encode_fields__) == {"args"}
    (outcome,) = run("tell", msgspec.structs.replace(call(log=lines.append), inputs={"args": {"a": 1}}))
    assert (outcome.result, lines) == (["k", {"a": 1}], ["told"])


def test_a_function_may_change_what_it_gets() -> None:
    @noetl.tool("spoil")
    async def spoil(rows: list[Any], attempt: Call) -> None:
        """Changes everything."""
        rows[0]["n"] = 2
        attempt.args["more"].clear()  # type: ignore[union-attr]  # a list

    inputs: dict[str, Any] = {"rows": [{"n": 1}], "args": {"more": [1]}}
    assert outcome_of("spoil", **inputs).status == "ok"
    assert inputs == {"rows": [{"n": 1}], "args": {"more": [1]}}


def test_args_that_a_function_does_not_take_are_no_wrong_input() -> None:
    @noetl.tool("nothing")
    async def nothing() -> None: ...

    (outcome,) = run("nothing", msgspec.structs.replace(call(), inputs={"args": {"a": 1}}))
    assert outcome.status == "ok"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raising(problem: BaseException) -> None:
    @noetl.tool("broken")
    async def broken() -> None:
        raise problem


@pytest.mark.spec("000 §5 (1)")
@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (KeyError("k"), ErrorInfo(kind="tool", message="KeyError: 'k'")),
        (ValueError(), ErrorInfo(kind="tool", message="ValueError")),
        (ValueError("half \ud800"), ErrorInfo(kind="tool", message="ValueError: half ?")),
        (Unprintable(), ErrorInfo(kind="tool", message="Unprintable")),
        (TimeoutError("its own"), ErrorInfo(kind="tool", message="TimeoutError: its own")),
        (SystemExit(3), ErrorInfo(kind="tool", message="it tried to end the worker: SystemExit: 3")),
        (
            asyncio.CancelledError(),
            ErrorInfo(kind="cancelled", message="something that it awaits was cancelled"),
        ),
        (
            noetl.ToolError("connection", "no line", retryable=True, retry_after=2.5),
            ErrorInfo(kind="connection", message="no line", retryable=True, retry_after=2.5),
        ),
    ],
    ids=repr,
)
def test_what_a_function_raises_is_the_error_of_its_task(problem: BaseException, expected: ErrorInfo) -> None:
    raising(problem)
    error = error_of("broken")
    assert msgspec.structs.replace(error, details={}) == expected


def test_an_exception_leaves_its_traceback_and_our_frames_are_not_in_it() -> None:
    @noetl.tool("broken")
    async def broken() -> None:
        deeper()

    def deeper() -> None:
        raise KeyError("k")

    details = error_of("broken").details
    assert details["exception"] == "KeyError"
    lines = details["traceback"].splitlines()
    assert [line.split(", ")[-1] for line in lines if line.startswith("  File ")] == [
        "in broken",
        "in deeper",
    ]
    assert lines[-1] == "KeyError: 'k'"


def test_a_tool_error_is_no_accident_and_leaves_no_traceback() -> None:
    raising(noetl.ToolError("limit", "too much", details={"most": 3}))
    assert error_of("broken").details == {"most": 3}


def test_an_error_is_of_a_known_kind() -> None:
    with pytest.raises(ValueError, match="`conection` is no kind of error: there are admission, cancelled"):
        noetl.ToolError("conection", "…")  # type: ignore[arg-type]  # as code without types may


@pytest.mark.parametrize(
    ("value", "expected"),
    [((1, 2), [1, 2]), ({"on": date(2030, 1, 31)}, {"on": "2030-01-31"}), (None, None)],
)
def test_a_result_becomes_json(value: object, expected: Json) -> None:
    @noetl.tool("give")
    async def give() -> object:
        return value

    assert outcome_of("give").result == expected


def test_a_result_that_is_not_json_names_its_place() -> None:
    @noetl.tool("give")
    async def give() -> object:
        return {"rows": [{1}]}

    error = error_of("give")
    assert (error.kind, error.message) == (
        "tool",
        "its result is not JSON: `$.rows[0]` is of type `set`, which JSON has no form for",
    )


def test_a_function_that_takes_too_long_is_cancelled() -> None:
    ended = []

    @noetl.tool("wait_long")
    async def wait_long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    (outcome,) = run("wait_long", call(timeout=0.05))
    assert outcome.error == ErrorInfo(kind="timeout", message="it was not done within 0.05 s", retryable=True)
    assert ended == [True]


def test_cancelling_a_call_cancels_the_function() -> None:
    async def scenario() -> None:
        begun = asyncio.Event()

        @noetl.tool("wait_long")
        async def wait_long() -> None:
            begun.set()
            await asyncio.Event().wait()

        tool = Tools(installed_kinds()).get("wait_long")
        assert tool is not None
        running = asyncio.create_task(tool.run(call()))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())


def synchronous(a: int) -> int:
    return a


def yielding(a: int) -> Iterator[int]:
    yield a


async def variadic(*values: int) -> None: ...


async def positional(value: int, /) -> None: ...


async def keyed(spec: int) -> None: ...


async def odd(when: date) -> None: ...


async def odd_inside(many: list[dict[str, set[int]]]) -> None: ...


async def unknown(value: "Nothing") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point of it


class WithoutRun:
    pass


class SynchronousRun:
    def run(self, _call: Call) -> None: ...


class OddInputs:
    inputs = 7

    async def run(self, _call: Call) -> None: ...


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (partial(variadic), "the tool `x` must be a class or a function"),
        (yielding, "the tool `x` yields values: it must return one, for example a list"),
        (variadic, "`values` of `variadic` cannot be given by name, as inputs are"),
        (positional, "`value` of `positional` cannot be given by name"),
        (keyed, "`spec` of `keyed` is a key that every task has: choose another name"),
        (odd, "the input `when` of `odd` has a type that documents do not"),
        (odd_inside, "the input `many` of `odd_inside` has a type that documents do not"),
        (unknown, "the annotations of `unknown` cannot be read: name 'Nothing' is not defined"),
        (WithoutRun, "`WithoutRun` needs `async def run(self, call: Call) -> Outcome`"),
        (SynchronousRun, "`SynchronousRun` needs `async def run"),
        (OddInputs, "`OddInputs.inputs` must be a msgspec Struct"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_what_to_change(
    target: Callable[..., Any], message: str
) -> None:
    with pytest.raises(ToolRefused, match=re.escape(message)):
        noetl.tool("x")(target)
    assert installed_kinds().get("x") is None


@pytest.mark.parametrize("name", ["", "two words", "7up", "{{ x }}", synchronous])
def test_a_tool_needs_a_name(name: Any) -> None:
    with pytest.raises(ToolRefused, match="a tool needs a name"):
        noetl.tool(name)


def test_a_name_is_declared_once() -> None:
    @noetl.tool("mine")
    async def mine() -> None: ...

    with pytest.raises(KindTaken, match=r"the tool kind `mine` of `.*\.other` is declared by `.*\.mine`"):

        @noetl.tool("mine")
        async def other() -> None: ...

    with pytest.raises(KindTaken, match="the tool kind `http` is built in"):

        @noetl.tool("http")
        async def http() -> None: ...


def test_declaring_it_again_from_the_same_place_replaces_it() -> None:
    def declare(number: int) -> None:
        @noetl.tool("mine")
        async def mine() -> int:
            return number

    declare(1)
    declare(2)
    assert outcome_of("mine").result == 2


class LoudSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    loud: bool | None = None


def test_a_declaration_may_have_knobs_a_check_and_a_summary() -> None:
    def check(inputs: Any, _spec: Any) -> Iterator[Fault]:
        if inputs.get("a") == inputs.get("b"):
            yield Fault("`a` and `b` are the same", key="b")

    @noetl.tool("pair", summary="Takes two.", spec=LoudSpec, check=check)
    async def pair(a: int, b: int, attempt: Call) -> Json:
        return attempt.spec.get("loud")

    assert kind_named("pair").summary == "Takes two."
    assert [problem.code for problem in problem_positions(task("kind: pair\na: 1\nb: 1"))] == ["bad-input"]
    assert [
        problem.code for problem in problem_positions(task("kind: pair\na: 1\nb: 2\nspec: { quiet: true }"))
    ] == ["unknown-key"]
    (outcome,) = run("pair", call(a=1, b=2, spec={"loud": True}))
    assert outcome.result is True


def test_declaring_needs_nothing_that_running_does() -> None:
    code = "import sys, noetl.loader, noetl; noetl.tool; assert not {'asyncio', 'aiohttp'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
