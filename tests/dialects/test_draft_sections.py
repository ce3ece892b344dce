"""The sections of a 003 document in canonical form."""

import pytest

from tests.dialects.dialect_execution import run_document
from tests.dialects.dialect_upgrade import draft_document, upgrade_text, yaml_values


@pytest.mark.spec("003 §1.1")
def test_root_sections_stay_and_the_word_draft_goes() -> None:
    upgraded = upgrade_text(
        """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: a, path: b, version: "2.0", dialect: draft }
executor: { kind: distributed, spec: { pool: default } }
workload: { url: "https://example.com" }
workflow: [{ step: start, tool: [{ x: { kind: noop } }] }]
workbook:
  tasks:
    fetch:
      kind: http
      url: "{{ vars.url }}"
      eval: [{ else: { do: continue, set_vars: { n: 1 } } }]
""",
        "draft",
    )
    assert upgraded.problems == []
    assert upgraded.document == yaml_values(
        """
        apiVersion: noetl.io/v2
        kind: Playbook
        metadata: { name: a, path: b, version: "2.0" }
        executor: { kind: distributed, spec: { pool: default } }
        workload: { url: "https://example.com" }
        workflow: [{ step: start, tool: [{ name: x, kind: noop }] }]
        workbook:
          tasks:
            fetch:
              kind: http
              url: "{{ run.url }}"
              spec: { policy: { rules: [{ else: { then: { do: continue, set_run: { n: 1 } } } }] } }
        """
    )


ROOT_LAYOUT = """
apiVersion: noetl.io/v2
kind: Playbook

metadata:
  name: example
  path: examples/example
  version: "2.0"
  description: Example playbook

executor:
  kind: distributed
  spec:
    # server/worker/queue selection knobs (implementation-defined)
    pool: default

workload:
  # immutable merged execution input (defaults + request payload)
  api_url: "https://example.com"

workflow:
  - step: start
    tool: [{ask: {kind: noop, args: {url: "{{ workload.api_url }}"}}}]

workbook:
  # optional catalog of named tasks/tools (future/optional)
  tasks: {}
"""


@pytest.mark.spec("003 §1.2")
def test_the_example_of_a_root_layout_runs() -> None:
    assert run_document(ROOT_LAYOUT, dialect="draft").result == {"url": "https://example.com"}


@pytest.mark.spec("003 §12")
def test_root_vars_are_passed_on_to_be_refused() -> None:
    upgraded = upgrade_text(
        draft_document("- { step: a, next: [{ step: a }] }\n") + "vars: { a: 1 }\n", "draft"
    )
    assert upgraded.document["vars"] == {"a": 1}
