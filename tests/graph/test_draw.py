import re
import struct
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noetl.dsl.document.playbook import Playbook
from noetl.graph import FORMATS, ExecutionFacts, GraphError, draw
from noetl.graph.playbook_text import fit_text, text_width, wrap_text
from tests.graph.playbook_builder import arc, full_playbook, loop, playbook, step, task

SVG = "{http://www.w3.org/2000/svg}"
STATES = {
    "start": "completed",
    "fetch": "failed",
    "left": "running",
    "right": "waiting",
    "merge": "not_admitted",
    "alert": "cancelled",
}
FACTS = ExecutionFacts(STATES)
HOSTILE = [
    "<script>alert('x')</script>",
    "&amp; & \" ' ` ]]> --> <!-- */",
    "line\nbreak\r\n\ttab \x00\x1b",
    "end",
    "a|b{c}[d](e)>f;g#h%%{init}%%",
    "back\\slash\\",
    "\\\"'\\n\\l",
    "שלום عالم",
    "👩‍👩‍👧 日本語 🎉",
    "\u202eright to left\u202c \ufffe\uffff\ud800",
    "--- title: x",
    "style a:b#c;",
    "x" * 10_240,
    "{{ '" + "y" * 10_240 + "' }}",
]


def texts(playbook: Playbook) -> dict[str, str]:
    return {name: draw(playbook, name).decode() for name in FORMATS if name != "png"}


def svg_words(playbook: Playbook) -> str:
    root = ElementTree.fromstring(draw(playbook, "svg"))  # noqa: S314 - our own output
    return "\n".join(element.text or "" for element in root.iter())


@pytest.mark.parametrize("name", FORMATS)
def test_equal_playbooks_give_equal_bytes(name: str) -> None:
    assert draw(full_playbook(), name, facts=FACTS) == draw(full_playbook(), name, facts=FACTS)


@pytest.mark.parametrize("name", ["svg", "mermaid", "dot"])
def test_everything_is_in_every_format(name: str) -> None:
    text = svg_words(full_playbook()) if name == "svg" else draw(full_playbook(), name).decode()
    for drawn_step in full_playbook().workflow:
        assert drawn_step.name in text
        for drawn_task in drawn_step.tasks:
            assert drawn_task.label in text
            assert drawn_task.kind in text
    for words in (
        "Where it begins",
        "admit if ctx.errors == 0",
        "join all",
        "join 1 of 1",
        "for endpoint in workload.endpoints",
        "parallel, 7 in flight",
        "5\u00d7",
        "break",
        "workload.enabled",
        "ctx.has_more",
        "ctx.again",
        "final",
    ):
        assert words in text, words


def test_svg_draws_every_step_and_every_arc() -> None:
    root = ElementTree.fromstring(draw(full_playbook(), "svg"))  # noqa: S314 - our own output
    groups = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert groups.count("step") == 8
    assert groups.count("edge") == 11
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert "start → fetch: workload.enabled" in titles
    assert "right → right: ctx.again" in titles


def test_svg_stands_alone_and_brings_its_background() -> None:
    root = ElementTree.fromstring(draw(full_playbook(), "svg"))  # noqa: S314 - our own output
    assert not any("href" in name or name == "style" for element in root.iter() for name in element.attrib)
    background = root.find(f"{SVG}rect")
    assert background is not None
    assert (background.get("width"), background.get("height")) == (root.get("width"), root.get("height"))


def test_svg_shortens_a_guard_and_keeps_all_of_it_in_a_title() -> None:
    condition = " or ".join(f"ctx.value_{number} == {number}" for number in range(12))
    text = draw(playbook(step("a", to=[arc("b", condition)]), step("b")), "svg").decode()
    assert f"a → b: {condition}" in text
    assert "…</text>" in text


def test_svg_tells_failures_and_inclusive_routers_apart() -> None:
    text = draw(full_playbook(), "svg").decode()
    assert text.count("stroke-dasharray") == 1
    assert text.count('class="fork"') == 1


def test_states_colour_and_fade() -> None:
    plain, coloured = (
        draw(full_playbook(), "svg").decode(),
        draw(full_playbook(), "svg", facts=FACTS).decode(),
    )
    for word in ("completed", "failed", "running", "waiting", "not admitted", "cancelled"):
        assert f">{word}</text>" in coloured
    assert 'opacity="0.4"' in coloured
    assert 'opacity="0.4"' not in plain
    assert draw(full_playbook(), "mermaid", facts=FACTS).decode().count("classDef") == 7
    assert "#d32f3b" in draw(full_playbook(), "dot", facts=ExecutionFacts({"fetch": "failed"})).decode()


def test_an_unknown_state_is_shown_as_a_word() -> None:
    assert b">odd</text>" in draw(full_playbook(), "svg", facts=ExecutionFacts({"start": "odd"}))


def test_an_unknown_format_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(GraphError, match="`gif`: one of svg, png, mermaid, dot"):
        draw(full_playbook(), "gif")


def test_png_is_a_picture_at_twice_the_size() -> None:
    root = ElementTree.fromstring(draw(full_playbook(), "svg"))  # noqa: S314 - our own output
    data = draw(full_playbook(), "png")
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    assert (width, height) == (2 * int(root.get("width", "")), 2 * int(root.get("height", "")))
    assert (depth, colour) == (8, 6)
    assert len(data) > 20_000


def test_png_shows_states_in_colour() -> None:
    assert draw(full_playbook(), "png") != draw(full_playbook(), "png", facts=FACTS)


@pytest.mark.parametrize("package", ["resvg_py", "font_roboto"])
def test_png_names_the_extra_that_is_missing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GraphError, match=rf"`{package}`: pip install 'noetl\[png\]'"):
        draw(full_playbook(), "png")


def hostile(text: str) -> Playbook:
    condition = "ctx.a == '" + re.sub(r"['\\{}%#]", "", text) + "'"
    return playbook(
        step(text, task(text, text), desc=text, to=[arc("b", condition), arc(text)], loop=loop([text], text)),
        step("b"),
        name=text,
    )


def check(drawn: Playbook) -> None:
    """Every text format is well-formed, and says no more than the playbook has."""
    states = {step.name: step.name for step in drawn.workflow}
    facts = ExecutionFacts(states, states, {})
    root = ElementTree.fromstring(draw(drawn, "svg", facts=facts))  # noqa: S314 - our own output
    groups = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert (groups.count("step"), groups.count("edge")) == (2, 2)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "g", "title", "rect", "path", "circle", "text")
    }
    check_dot(draw(drawn, "dot", facts=facts).decode())
    check_mermaid(draw(drawn, "mermaid", facts=facts).decode())


def check_dot(text: str) -> None:
    """Each line is one statement whose strings end where they should."""
    string = r'"(?:[^"\\]|\\.)*"'
    attributes = rf"\[\w+=(?:{string}|[\w.]+)(?:, \w+=(?:{string}|[\w.]+))*\]"
    head, *lines, foot, end = text.split("\n")
    assert re.fullmatch(rf"digraph {string} {{", head)
    assert (foot, end) == ("}", "")
    assert all(re.fullmatch(rf"  (?:graph|node|edge) {attributes}", line) for line in lines[:3])
    assert [line.split()[0] for line in lines[3:5]] == ["s0", "s1"]
    assert all(re.fullmatch(rf"  s\d {attributes}", line) for line in lines[3:5])
    assert all(re.fullmatch(rf"  s\d -> s\d(?: {attributes})?", line) for line in lines[5:])
    assert len(lines) == 7


def check_mermaid(text: str) -> None:
    opening, title, closing, header, *lines = text.splitlines()
    assert (opening, closing, header) == ("---", "---", "flowchart TD")
    assert title.startswith('title: "')
    node = re.compile(r'  s\d+(?:\(\["|\[\["|\[")(?P<label>[^"]*)(?:"\]\)|"\]\]|"\])')
    arrow = re.compile(r'  s\d+ (?:-->|==>|-\.->)(?:\|"(?P<label>[^"]*)"\|)? s\d+')
    for line in lines:
        element = node.fullmatch(line) or arrow.fullmatch(line)
        if element is None:
            assert re.fullmatch(r"  (classDef|class|linkStyle) [\w,:.# -]+", line), line
        elif element["label"]:
            plain = re.sub(r"#\d+;|<br/>|</?b>", "", element["label"])
            assert not re.search(r'[<>&`"|{}\[\]#;:%\\+*~]|(?<!\w)[_-]|[_-](?!\w)', plain), line


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(text: str) -> None:
    check(hostile(text))


@given(st.text(max_size=40).filter(lambda text: text != "b"))
@example("0-_")
@settings(max_examples=60, deadline=None)
def test_any_text_stays_text(text: str) -> None:
    check(hostile(text))


def test_hostile_text_can_be_painted() -> None:
    for text in HOSTILE:
        assert draw(hostile(text), "png").startswith(b"\x89PNG")


@given(st.text(max_size=400), st.integers(20, 300))
def test_text_that_is_fitted_fits(text: str, room: int) -> None:
    assert text_width(fit_text(text, room, 12), 12) <= room
    lines = wrap_text(text, room, 12, lines=2)
    assert len(lines) <= 2
    assert all(text_width(line, 12) <= room for line in lines)


def ended_net() -> Playbook:
    return playbook(
        step(
            "a",
            to=[arc("b", "event.name == 'step.done' and ctx.n > 1"), arc("c", "event.name == 'step.failed'")],
        ),
        step("b", to=[arc("d", "event.name == 'step.done'")]),
        step("c", to=[arc("d", "event.name == 'step.done'")]),
        step("d"),
    )


RAN = ExecutionFacts(
    {"a": "completed", "b": "completed", "c": "completed", "d": "completed"},
    {"a": "3 runs \u00b7 1.2 s"},
    {("a", 0): 3, ("b", 0): 1},
)


def test_an_arc_that_was_not_taken_is_drawn_so_though_both_its_steps_ran() -> None:
    root = ElementTree.fromstring(draw(ended_net(), "svg", facts=RAN))  # noqa: S314 - our own output
    groups = {group[0].text: group for group in root.iter(f"{SVG}g") if group.get("class") == "edge"}
    assert {title: group.get("opacity") for title, group in groups.items()} == {
        "a → b: event.name == 'step.done' and ctx.n > 1 (taken 3\u00d7)": None,
        "a → c: event.name == 'step.failed' (not taken)": "0.4",
        "b → d: event.name == 'step.done' (taken 1\u00d7)": None,
        "c → d: event.name == 'step.done' (not taken)": "0.4",
    }
    # One that was not taken has its own arrow head: it must not end in the way of one that was.
    assert all(len(group.findall(f"{SVG}path")) >= 2 for group in groups.values())
    mermaid, dot = (draw(ended_net(), name, facts=RAN).decode() for name in ("mermaid", "dot"))
    assert "  linkStyle 1,3 opacity:0.4,stroke-dasharray:2 4\n" in mermaid
    assert [line.split(" [")[0].strip() for line in dot.splitlines() if "style=dotted" in line] == [
        "s0 -> s2",
        "s2 -> s3",
    ]


def test_counts_and_notes_are_in_every_format() -> None:
    svg, mermaid, dot = (draw(ended_net(), name, facts=RAN).decode() for name in ("svg", "mermaid", "dot"))
    assert ">3\u00d7</text>" in svg
    assert ">1\u00d7</text>" not in svg
    assert ">3 runs \u00b7 1.2 s</text>" in svg
    assert 'label="1 ✓ ctx.n > 1 3\u00d7"' in dot
    assert "3 runs \u00b7 1.2 s\\l" in dot
    assert '|"1 ✓ ctx.n #62; 1 3\u00d7"|' in mermaid
    assert "<br/>3 runs \u00b7 1.2 s" in mermaid


def test_how_a_step_ended_is_a_mark_and_not_a_text() -> None:
    for name, text in texts(ended_net()).items():
        drawn = re.sub(r"<title>[^<]*</title>|tooltip=\"[^\"]*\"", "", text)
        assert "event.name" not in drawn, name
    dot = draw(ended_net(), "dot").decode()
    assert ('label="2 ✗"' in dot, 'label="✓"' in dot) == (True, True)
