"""Golden histories as files: a playbook, its events as they are stored, the state they lead to.

`python -m tests.golden.golden_files` records scenarios that have no files yet. What is recorded is never
written again: every later release has to read it and come to the same state.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from noetl.events.codec import FORMAT, decode, encode
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.plan import Plan
from tests.golden.golden_scenarios import RECORDED, SCENARIOS, play_scenario
from tests.golden.normal_form import normal_form
from tests.playbooks import playbook_of


class Line(Struct, frozen=True):
    """One event. `last`: it ends its append."""

    seq: int
    ts: int
    kind: int
    format: int
    last: bool
    body: Raw


class History(Struct, frozen=True):
    plan: Plan
    events: list[Event]
    ends: list[int]
    """The numbers of the events that end an append."""
    expected: dict[str, Any]

    @property
    def execution_id(self) -> str:
        return str(self.expected["execution_id"])


def history(name: str) -> History:
    """What is recorded under this name, read with this release."""
    lines = [msgspec.json.decode(line, type=Line) for line in _file(name, "jsonl").read_bytes().splitlines()]
    return History(
        Plan(playbook_of(_file(name, "yaml").read_text(encoding="utf-8"))),
        [Event(line.seq, line.ts, decode(line.kind, bytes(line.body), line.format)) for line in lines],
        [line.seq for line in lines if line.last],
        json.loads(_file(name, "json").read_text(encoding="utf-8")),
    )


def record(name: str) -> None:
    """Play a scenario and keep its history. Raises FileExistsError if there is one."""
    driver = play_scenario(name)
    state = json.dumps(normal_form(driver.state), indent=1, sort_keys=True, ensure_ascii=False)
    with _file(name, "jsonl").open("xb") as file:
        for append in driver.appends:
            for event in append:
                file.write(msgspec.json.encode(_line(event, last=event is append[-1])) + b"\n")
    with _file(name, "json").open("x", encoding="utf-8") as file:
        file.write(state + "\n")


def _line(event: Event, *, last: bool) -> Line:
    kind = kind_of_body(event.body).number
    return Line(event.seq, event.ts, kind, FORMAT, last, Raw(encode(event.body)))


def _file(name: str, suffix: str) -> Path:
    return RECORDED / f"{name}.{suffix}"


def main() -> None:
    for name in SCENARIOS:
        if not _file(name, "jsonl").exists():
            record(name)
            sys.stdout.write(f"recorded {name}\n")


if __name__ == "__main__":
    main()
