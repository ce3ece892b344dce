"""Values too large for an event, and playbooks that hand them on."""

ROWS = [{"id": number, "text": "x" * 100} for number in range(1_000)]
PAGE = {"n": 3, "rows": ROWS, "data": {"total": 1_000}}


def two(arc: str, task: str = "kind: noop", more: str = "") -> str:
    return f"""
- step: start
  tool: [{{t: {{kind: python, code: "1"{more}}}}}]
  next: {{arcs: [{{step: b, {arc}}}]}}
- step: b
  tool: [{{u: {{{task}}}}}]
""".lstrip()
