"""YAML for people: the text reads well, and reads back as the same document."""

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.dialects.yaml_writer import to_yaml
from noetl.dsl.document.composer import compose
from noetl.dsl.document.source import node_value
from noetl.model.json import Json

NASTY = [
    "", " ", "  a", "a  ", "a  b", "#", "a #b", "a: b", "a:", ":a", "- a", "-", "?", "? a", "{a}", "[a]", "a, b",
    "&a", "*a", "!a", "!!str a", "%a", "@a", "`a`", "|", ">", "'", '"', "''", '""', "it's", 'say "hi"', "a\\b",
    "\\", "\\n", "\t", "a\tb", "\ta", "a\t", "\n", "\n\n", "a\n", "a\n\n", "\na", "\n\na\n", "a\nb", "a\nb\n",
    "  a\nb", "\ta\nb", "a\n  b\n\nc\n", "a\n \nb", "a\n ", "a\n  \n", " \na", "\r", "a\r\nb", "\0", "\x07", "\x7f",
    "\x85", "\xa0", "\u2028", "\u2029", "a\u2028b\nc", "\ufeff", "\ufeffa\nb", "\U0001f600", "Zürich", "日本",
    "null", "Null", "~", "true", "False", "yes", "No", "on", "OFF", "y", "n", "1", "-1", "1.0", "1e5", "0x1f",
    "0o17", "007", "1_000", ".5", ".inf", ".nan", "2024-01-01", "12:30", "<<", "=", "---", "--- a", "...",
    "---\na", "x" * 5000, "x " * 3000, "{{ a }}", "{% if a %}b{% endif %}", "{# a #}", "{{ 'a' }}", '{{ "a" }}',
    """{{ "a" ~ 'b' }}""", "a\n# b\n", "# a\nb\n", "%TAG\nb", "\u0300a", "\ue000", "\ufffe",
]  # fmt: skip

TEXT = st.text(max_size=40) | st.sampled_from(NASTY) | st.text("ab \n\t#:-'\"{}%\\", max_size=30)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def read(text: str) -> Json:
    node = compose(text)
    assert node is not None
    return node_value(node)


@given(JSON)
@settings(max_examples=500)
def test_every_document_reads_back_as_it_was(document: Json) -> None:
    assert read(to_yaml(document)) == document


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("workflow", "metadata", "workload", "workbook", "kind", "apiVersion", "x"), JSON
        ),
    )
)
def test_sections_of_any_shape_read_back_as_they_were(document: dict[str, Json]) -> None:
    assert read(to_yaml(cast("Json", document))) == document


@pytest.mark.parametrize("text", NASTY, ids=repr)
def test_nasty_text_reads_back_in_every_place(text: str) -> None:
    document: Json = {
        "value": text,
        "list": [text, [text], {"key": text}],
        "then": {"do": text},
        text: {text: text},
        "last": "end",
    }
    assert read(to_yaml(document)) == document


def test_text_that_looks_like_another_type_is_quoted() -> None:
    written = to_yaml({"a": ["true", "no", "1", "1.5", "null", "~", "2024-01-01", "0x1f", "fine", "GET"]})
    assert written == (
        'a:\n  - "true"\n  - "no"\n  - "1"\n  - "1.5"\n  - "null"\n  - "~"\n  - "2024-01-01"\n  - "0x1f"\n'
        "  - fine\n  - GET\n"
    )


def test_a_document_has_the_order_and_the_air_of_the_specification() -> None:
    document: Json = {
        "workflow": [
            {
                "next": {
                    "arcs": [{"when": "{{ event.name == 'step.done' }}", "step": "end"}],
                    "spec": {"mode": "exclusive"},
                },
                "tool": [
                    {
                        "spec": {
                            "policy": {
                                "rules": [
                                    {
                                        "when": "{{ outcome.status == 'error' }}",
                                        "then": {"do": "retry", "attempts": 3, "delay": 2.5},
                                    },
                                    {"else": {"then": {"do": "continue"}}},
                                ]
                            }
                        },
                        "code": "def main(input):\n    return 1\n",
                        "kind": "python",
                        "desc": "Count",
                        "name": "count",
                    }
                ],
                "loop": {"iterator": "city", "in": "{{ workload.cities }}", "spec": {"mode": "parallel"}},
                "step": "start",
            },
            {"step": "end", "tool": [{"name": "done", "kind": "noop"}]},
        ],
        "workload": {"zone": "b", "area": "a"},
        "metadata": {"name": "a", "path": "x/a", "version": "2.0"},
        "kind": "Playbook",
        "apiVersion": "noetl.io/v2",
    }
    assert to_yaml(document) == EXPECTED
    assert read(EXPECTED) == document


EXPECTED = """\
apiVersion: noetl.io/v2
kind: Playbook

metadata:
  name: a
  path: x/a
  version: "2.0"

workload:
  zone: b
  area: a

workflow:
  - step: start
    loop:
      spec: { mode: parallel }
      in: "{{ workload.cities }}"
      iterator: city
    tool:
      - name: count
        kind: python
        desc: Count
        code: |
          def main(input):
              return 1
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: retry, attempts: 3, delay: 2.5 }
              - else:
                  then: { do: continue }
    next:
      spec: { mode: exclusive }
      arcs:
        - step: end
          when: "{{ event.name == 'step.done' }}"

  - step: end
    tool:
      - name: done
        kind: noop
"""
