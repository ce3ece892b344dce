"""What the page is measured with: many events, many steps, something that waits, and a net to lay out."""

from noetl.graph.layout import BoxLink, BoxSize


def loop_playbook(iterations: int) -> str:
    """Four events for each iteration."""
    return f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: events, path: bench/events}}
workflow:
- step: start
  loop:
    in: "{{{{ range({iterations}) | list }}}}"
    iterator: n
    spec: {{mode: parallel, max_in_flight: 50}}
  tool: {{name: add, kind: noop, args: {{n: "{{{{ iter.n }}}}"}}}}
  next: {{arcs: [{{step: end}}]}}
- step: end
  tool: {{kind: noop, args: {{}}}}
"""


def steps_playbook(chains: int, length: int) -> str:
    """Chains of steps from one beginning."""
    lines = [
        "apiVersion: noetl.io/v2",
        "kind: Playbook",
        "metadata: {name: steps, path: bench/steps}",
        "workflow:",
        "- step: start",
        "  tool: {kind: noop, args: {}}",
        "  next:",
        "    spec: {mode: inclusive}",
        "    arcs:",
        *(f"    - step: chain_{chain:02}_000" for chain in range(chains)),
    ]
    for chain in range(chains):
        for number in range(length):
            lines += [f"- step: chain_{chain:02}_{number:03}", "  tool: {kind: noop, args: {}}"]
            if number + 1 < length:
                lines.append(f"  next: {{arcs: [{{step: chain_{chain:02}_{number + 1:03}}}]}}")
    return "\n".join(lines) + "\n"


def waits_playbook(signals: int) -> str:
    """Goes on by one iteration with each signal `go`."""
    return f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: waits, path: bench/waits}}
workflow:
- step: start
  loop: {{in: "{{{{ range({signals + 1}) | list }}}}", iterator: n, spec: {{mode: sequential}}}}
  tool: {{kind: wait, signal: go}}
"""


def layered_net(boxes: int, width: int = 25) -> tuple[list[BoxSize], list[BoxLink]]:
    """Rows of boxes, each with links to three of the next row."""
    links = []
    for number in range(boxes - width):
        row, column = divmod(number, width)
        for shift in (0, 3, 7):
            label = BoxSize(60 + number % 9 * 10, 18) if shift else None
            links.append(BoxLink(number, (row + 1) * width + (column + shift) % width, "flow", label))
    return [BoxSize(100 + number % 7 * 30, 60) for number in range(boxes)], links
