"""The sections of a version 1 document that mean the same in a canonical one."""

import pytest

from tests.dialects.dialect_upgrade import upgrade_text

DOCUMENT = """\
apiVersion: noetl.io/v1
kind: Playbook
name: sections
path: tests/sections
workload:
  text: plain
  number: 3
  flag: true
  list: [1, { a: b }]
  template: "{{ workload.number }}-{{ workload.text }}"
workflow:
  - step: start
    next: [{ then: [{ step: middle }] }]
  - step: middle
    next: [{ then: [{ step: end }] }]
  - step: end
"""


@pytest.mark.spec("004 §2")
def test_the_workload_stays_as_it_is() -> None:
    assert upgrade_text(DOCUMENT, "v1").document["workload"] == {
        "text": "plain",
        "number": 3,
        "flag": True,
        "list": [1, {"a": "b"}],
        "template": "{{ workload.number }}-{{ workload.text }}",
    }


@pytest.mark.spec("004 §4")
def test_the_workflow_keeps_its_steps_in_order() -> None:
    upgraded = upgrade_text(DOCUMENT, "v1")
    assert upgraded.problems == []
    names = [step["step"] for step in upgraded.steps if isinstance(step, dict)]
    assert names == ["start", "middle", "end"]
