"""What a server tells who writes playbooks: pictures, kinds, the schema, completion."""

import json
import re
from pathlib import Path
from urllib import request
from urllib.error import HTTPError
from xml.etree import ElementTree as Xml

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.graph import draw
from noetl.loader import load
from noetl.ports.page_api import NetAnswer
from tests.cli.command_line import run
from tests.server.server_process import GREET, ServerProcess

BRANCHING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: branching, path: examples/branching}
workflow:
- step: start
  desc: Looks
  tool:
  - {name: look, kind: noop, args: {n: 1}}
  - name: again
    kind: noop
    args: {}
    spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 4}}]}}
  next:
    spec: {mode: inclusive}
    arcs:
    - {step: big, when: "{{ event.name == 'step.done' and workload.n > 10 }}"}
    - {step: all}
- step: big
  loop: {in: [1, 2], iterator: n}
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: all}]}
- step: all
  spec: {policy: {join: all}}
  tool: {kind: noop, args: {}}
"""


def test_the_net_is_the_picture_that_graph_draws(client: Client) -> None:
    net = client.draw_net(BRANCHING).net
    assert net is not None
    svg = Xml.fromstring(draw(load(BRANCHING), "svg"))  # noqa: S314 - our own
    places = [
        tuple(map(float, re.findall(r"[-\d.]+", group.attrib["transform"])))
        for group in svg.iter("{http://www.w3.org/2000/svg}g")
        if group.attrib.get("class") == "step"
    ]
    assert [(round(box.x, 1), round(box.y, 1)) for box in net.boxes] == places
    texts = {text.text for box in net.boxes for text in box.texts}
    drawn = {element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert texts <= drawn
    assert {line for route in net.routes if route.label for line in route.label.lines} <= drawn


def test_the_net_says_what_stands_where_and_from_which_line(client: Client) -> None:
    net = client.draw_net(BRANCHING).net
    assert net is not None
    start, big, end = net.boxes
    assert (start.step, start.line, start.roles, start.inclusive) == ("start", 5, ["start"], True)
    assert [(task.label, task.line, [m.kind for m in task.marks]) for task in start.tasks] == [
        ("look", 8, []),
        ("again", 9, ["retry"]),
    ]
    assert [badge.kind for badge in big.badges] == ["loop"]
    assert big.stack > 0
    assert [badge.text for badge in end.badges] == ["join all"]
    assert [(r.source, r.target, r.number, r.order) for r in net.routes] == [
        ("start", "big", 0, "+"),
        ("start", "all", 1, "+"),
        ("big", "all", 0, ""),
    ]
    assert net.routes[0].mark == "done"
    assert "workload.n > 10" in net.routes[0].guard
    for box in net.boxes:
        assert 0 <= box.x <= box.x + box.width <= net.width
        assert 0 <= box.y <= box.y + box.height <= net.height


def test_a_registered_version_has_its_net(client: Client, server: ServerProcess) -> None:
    client.register(BRANCHING)
    first = client.net("examples/branching", 1)
    client.register(BRANCHING.replace("step: all", "step: every"))
    assert [box.step for box in client.net("examples/branching").boxes] == ["start", "big", "every"]
    assert client.net("examples/branching", 1) == first == client.draw_net(BRANCHING).net
    with pytest.raises(ServerError) as unknown:
        client.net("examples/branching", 9)
    assert unknown.value.code == "not_found"
    url, headers = (
        f"{server.url}/api/catalog/examples/branching@1/net",
        {"Authorization": f"Bearer {server.token}"},
    )
    with request.urlopen(request.Request(url, headers=headers)) as answer:  # noqa: S310 - the server of the test
        tag = answer.headers["ETag"]
    assert tag == f'"1-{first.hash}"'
    again = request.Request(url, headers={**headers, "If-None-Match": tag})  # noqa: S310 - likewise
    with pytest.raises(HTTPError) as unchanged, request.urlopen(again):  # noqa: S310 - likewise
        pass
    assert (unchanged.value.code, unchanged.value.read()) == (304, b"")


def test_a_draft_with_errors_has_problems_instead(client: Client) -> None:
    draft = client.draw_net(GREET.replace("kind: python", "kind: pyton"))
    assert draft.net is None
    assert [(problem.code, problem.line) for problem in draft.problems] == [
        (problem.code, problem.line)
        for problem in client.validate(GREET.replace("kind: python", "kind: pyton")).problems
    ]
    assert client.draw_net("a: [").net is None


def test_a_thousand_steps_are_drawn_and_kept(client: Client) -> None:
    steps = [
        f"- step: s{n}\n  tool: {{kind: noop, args: {{}}}}\n"
        f"  next: {{arcs: [{{step: s{n + 7}, when: '{{{{ workload.x }}}}'}}, {{step: s{n + 1}}}]}}\n"
        for n in range(1_000)
    ]
    ends = [f"- step: s{n}\n  tool: {{kind: noop, args: {{}}}}\n" for n in range(1_000, 1_007)]
    text = GREET.partition("workflow:")[0].replace("World", "World, x: 1") + "workflow:\n"
    text += "".join([*steps, *ends])
    first = client.draw_net(text)
    assert first.net is not None, first.problems
    assert len(first.net.boxes) == 1_007
    assert client.draw_net(text) == first


def test_the_same_words_in_other_lines_are_not_the_same_net(client: Client) -> None:
    first, second = client.draw_net(BRANCHING).net, client.draw_net("# above\n" + BRANCHING).net
    assert first is not None
    assert second is not None
    assert first.hash == second.hash
    assert [box.line + 1 for box in first.boxes] == [box.line for box in second.boxes]


def test_the_net_is_json_that_the_client_knows(client: Client) -> None:
    net = client.draw_net(GREET).net
    assert isinstance(net, NetAnswer)
    assert net.title == "greet"


def test_kinds_come_with_their_inputs_and_workers(client: Client) -> None:
    tools = {tool.kind: tool for tool in client.tools().tools}
    assert {"http", "python", "wait"} <= tools.keys()
    url = next(field for field in tools["http"].inputs if field.name == "url")
    assert (url.required, url.description) == (True, "Address, with `http://` or `https://`.")
    assert tools["python"].workers == 1
    assert tools["wait"].workers == 1
    assert all(tool.summary and tool.example for tool in tools.values())


def test_the_schema_is_that_of_the_command(client: Client, tmp_path: Path) -> None:
    assert client.schema() == json.loads(run("schema", cwd=tmp_path).out)


def test_completion_is_for_texts_that_are_wrong_yet(client: Client) -> None:
    before = len(client.audit().audit)
    answer = client.complete_text(GREET + "\n- step: x\n  tool:\n    ki", GREET.count("\n") + 4, 7)
    assert (answer.line, answer.start, answer.end) == (GREET.count("\n") + 4, 5, 7)
    first = answer.items[0]
    assert (first.label, first.kind, first.insert, first.doc) == ("kind", "key", "kind: ", "The tool.")
    assert client.complete_text("a: [", 1_000, 1).items == []
    assert len(client.audit().audit) == before, "reading is not audited"


def test_completion_refuses_a_place_that_is_none(client: Client) -> None:
    for line, column in ((0, 1), (1, 0), (1, 1_000_001)):
        with pytest.raises(ServerError) as refused:
            client.complete_text("", line, column)
        assert refused.value.code == "invalid_request"
        assert refused.value.problem.pointer in ("/line", "/column")
