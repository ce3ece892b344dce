"""Classes as tool kinds."""

from datetime import date
from typing import Any

import pytest
from msgspec import Struct

import noetl
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded
from noetl.ports.tool import Call
from tests.tools.declared_calls import error_of, kind_named, outcome_of


class Size(Struct, frozen=True, forbid_unknown_fields=True):
    """How large."""

    wide: int
    high: int = 1


class Given:
    """Gives what it is told to."""

    inputs: Size

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)

    async def run(self, _call: Call) -> Any:
        return self.outcomes.pop(0)


def of_class(answer: object) -> Outcome:
    """The outcome of a class whose `run` gives this."""

    @noetl.tool("given")
    class One(Given):
        def __init__(self) -> None:
            super().__init__(answer)

    return outcome_of("given", wide=1)


def test_the_inputs_of_a_class_may_be_an_annotation() -> None:
    noetl.tool("given")(Given)
    assert kind_named("given").inputs is Size
    assert error_of("given", wide="x").kind == "input"
    assert kind_named("given").summary == "Gives what it is told to."


def test_what_a_class_gives_becomes_json() -> None:
    outcome = of_class(Outcome(status="ok", result=(1,), helpers={"mine": {"a": (2,)}}, meta={"b": (3,)}))
    assert (outcome.result, outcome.helpers, outcome.meta["b"]) == ([1], {"mine": {"a": [2]}}, [3])
    broken = of_class(failed(ErrorInfo(kind="sql", message="no", details={"at": date(2030, 1, 31)})))
    assert broken.error is not None
    assert broken.error.as_value() == {"at": "2030-01-31", "kind": "sql", "message": "no", "retryable": False}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"a": 1}, "`run` gave a value of type `dict`, not an Outcome"),
        (Outcome(status="error"), "`run` gave an outcome whose status and error contradict each other"),
        (
            Outcome(status="ok", error=ErrorInfo(kind="sql", message="no")),
            "`run` gave an outcome whose status and error contradict each other",
        ),
        (
            failed(ErrorInfo(kind="odd", message="no")),  # type: ignore[arg-type]  # as code without types may
            "`run` gave an error of the kind `odd`, which is none",
        ),
        (succeeded({"a": {1}}), "its result is not JSON: `$.a` is of type `set`"),  # type: ignore[dict-item]  # likewise
    ],
)
def test_a_class_is_held_to_what_a_tool_promises(answer: object, message: str) -> None:
    outcome = of_class(answer)
    assert outcome.error is not None
    assert outcome.error.kind == "tool"
    assert message in outcome.error.message
