"""Where tokens go: the upgraded guards are evaluated, and must lead where v1 led (004 §4.3)."""

from typing import Any

import pytest

from noetl import validate
from noetl.expr.expression import parse
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.expr.runtime.truth import truthy
from noetl.model.json import Json
from tests.dialects.dialect_upgrade import v1_document, v1_steps

WORKBOOK = '- { task: fetch, type: http, method: GET, endpoint: "http://x" }\n'


def fired(step: Any, workload: dict[str, Json], result: Json, name: str = "step.done") -> list[str]:
    """The targets of the arcs that fire after this event."""
    event = {"name": name, "result": result}
    scope = Scope({"event": event, "workload": workload, "ctx": {}})
    taken = [
        arc["step"]
        for arc in step["next"]["arcs"]
        if "when" not in arc or truthy(parse(arc["when"]).evaluate(scope, EvaluationSite.GUARD))
    ]
    return taken if step["next"]["spec"]["mode"] == "inclusive" else taken[:1]


@pytest.mark.spec("004 §4.3")
@pytest.mark.parametrize("flag", ["false", " No ", "0", "none", "", "yes", True, False, 0, 1, None, [], [0]])
@pytest.mark.parametrize(
    "condition", ["workload.flag", "workload.flag or result.n > 1", "workload.flag and 1"]
)
def test_one_transition_fires_whatever_its_condition_gives(flag: Json, condition: str) -> None:
    (step,) = v1_steps(
        WORKBOOK,
        f"""
        - step: start
          run: [fetch]
          next:
            - when: "{{{{ {condition} }}}}"
              then: [a, b]
            - then: [c]
        """,
    )
    workload = {"flag": flag}
    condition_value = parse(f"{{{{ {condition} }}}}").evaluate(
        Scope({"workload": workload, "args": {"result": {}}}), EvaluationSite.GUARD
    )
    assert fired(step, workload, {}) == (["a", "b"] if truthy(condition_value) else ["c"])


@pytest.mark.spec("004 §6")
def test_steps_that_run_one_task_at_the_same_time_do_not_read_each_others_results() -> None:
    text = v1_document(
        WORKBOOK + '- { task: calc, type: python, code: "def main(input): return 1" }\n',
        """
        - { step: start, next: [{ then: [left, right] }] }
        - { step: left, run: [fetch, calc], next: [{ when: "{{ fetch.result.data }}", then: [end] }] }
        - { step: right, run: [fetch, calc], next: [{ when: "{{ fetch.result.data }}", then: [end] }] }
        - { step: end }
        """,
    )
    assert validate(text) == []
