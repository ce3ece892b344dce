"""One life of a scenario, in a process that kills itself: FOLDER SCENARIO WRITE before|after|never.

Each event that is durable is said in a line.
"""

import asyncio
import sys
from pathlib import Path

from noetl.events.event import Event
from noetl.testing.crash.fuse import Fuse
from noetl.testing.crash.process_life import SurvivingFiles, run_life
from tests.crash.crash_scenarios import LONG, SCENARIOS


def main(folder: str, name: str, write: str, when: str) -> None:
    fuse = Fuse(0 if when == "never" else int(write), after=when == "after", kill=True)
    asyncio.run(run_life(SurvivingFiles(Path(folder)), SCENARIOS.get(name, LONG), fuse, print_event))


def print_event(_: str, event: Event) -> None:
    sys.stdout.write(f"{type(event.body).__name__}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
