"""Golden histories as files: a playbook, its events as they are stored, the state they lead to.

A folder for each version of the rules (`decider`) that decided. `python -m tests.golden.golden_files` records
with the rules of today what has no files in their folder. What is recorded is never written again: every
later release has to read it and come to the same state.
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
from noetl.kernel.net.execution_request import DECIDER
from noetl.kernel.plan import Plan
from tests.golden.golden_scenarios import RECORDED, SCENARIOS, play_scenario
from tests.golden.normal_form import normal_form
from tests.kernel.driver import Driver
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


def recordings() -> list[tuple[str, int]]:
    """The scenarios, each with every version of the rules that it is recorded with."""
    return sorted((path.stem, int(path.parent.name)) for path in RECORDED.glob("*/*.jsonl"))


def history(name: str, decider: int = DECIDER) -> History:
    """What is recorded under this name, read with this release."""
    recorded = _file(name, "jsonl", decider).read_bytes().splitlines()
    lines = [msgspec.json.decode(line, type=Line) for line in recorded]
    return History(
        Plan(playbook_of((RECORDED / f"{name}.yaml").read_text(encoding="utf-8"))),
        [Event(line.seq, line.ts, decode(line.kind, bytes(line.body), line.format)) for line in lines],
        [line.seq for line in lines if line.last],
        json.loads(_file(name, "json", decider).read_text(encoding="utf-8")),
    )


def record(name: str) -> None:
    """Play a scenario and keep its history. Raises FileExistsError if there is one."""
    driver = play_scenario(name)
    state = json.dumps(normal_form(driver.state), indent=1, sort_keys=True, ensure_ascii=False)
    _file(name, "jsonl").parent.mkdir(exist_ok=True)
    with _file(name, "jsonl").open("xb") as file:
        file.write(history_bytes(driver))
    with _file(name, "json").open("x", encoding="utf-8") as file:
        file.write(state + "\n")


def history_bytes(driver: Driver) -> bytes:
    """A history as it is recorded: an event on each line."""
    return b"".join(
        msgspec.json.encode(_line(event, last=event is append[-1])) + b"\n"
        for append in driver.appends
        for event in append
    )


def recorded_bytes(name: str) -> bytes:
    """What is recorded with the rules of today."""
    return _file(name, "jsonl").read_bytes()


def _line(event: Event, *, last: bool) -> Line:
    kind = kind_of_body(event.body).number
    return Line(event.seq, event.ts, kind, FORMAT, last, Raw(encode(event.body)))


def _file(name: str, suffix: str, decider: int = DECIDER) -> Path:
    return RECORDED / str(decider) / f"{name}.{suffix}"


def main() -> None:
    for name in SCENARIOS:
        if not _file(name, "jsonl").exists():
            record(name)
            sys.stdout.write(f"recorded {name}\n")


if __name__ == "__main__":
    main()
