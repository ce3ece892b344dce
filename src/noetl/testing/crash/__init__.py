"""Proves that nothing is lost: a playbook is crashed at every write, resumed, and compared.

    crashes = Crashes(Scenario(name="chain", text=PLAYBOOK), tmp_path)
    crashes.at_every_write()

A run that was never interrupted says what is right. Then, for every write there is, a process dies right
before it, and another one right after it, before anybody knows. The next process goes on with the same
files. In the end every execution must have the same status, result, ctx, steps and discarded tokens, and
the world must have seen the same effects: an attempt that was recorded never again, one in flight at most
once more, with the same idempotency key.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from noetl.testing.crash.crash_record import AttemptKey, CrashRecord, RecordedAttempt
from noetl.testing.crash.fuse import Fuse
from noetl.testing.crash.process_life import Scenario, SurvivingFiles, empty_store, run_life

__all__ = ["Crashes", "Scenario"]


class Crashes:
    """Crashes of one scenario, each in a world of its own below `folder`."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self._folder = folder
        self._worlds = count()
        self._store = empty_store(folder / "empty.db")
        whole = self.new_files()
        asyncio.run(run_life(whole, scenario, Fuse()))
        self.uninterrupted = CrashRecord(whole)
        faults = self._faults(self.uninterrupted, [])
        assert not faults, "\n".join(["without any crash:", *faults])

    def new_files(self) -> SurvivingFiles:
        """A new one, in which nothing has happened."""
        folder = self._folder / f"{self.scenario.name}-{next(self._worlds)}"
        return SurvivingFiles.create(folder, self.scenario.files, self._store)

    def at_every_write(self) -> int:
        """Crashes before and after each write, once; the number of crashes. Raises AssertionError."""
        return sum(self._along(after=after) for after in (False, True))

    def at_every_two_writes(self) -> int:
        """For each write, crashes there, and the resumed process at each of its writes, too."""
        crashed = 0
        for first in count(1):
            for second in count(1):
                blown = self.crash(Fuse(first, after=first % 2 == 0), Fuse(second, after=second % 2 == 0))
                crashed += blown
                if not blown:
                    return crashed
                if blown == 1:
                    break
        raise AssertionError

    def crash(self, *fuses: Fuse) -> int:
        """One process after the other, and a last one that does not crash; how many did."""
        world = self.new_files()
        crashes: list[CrashRecord] = []
        where: list[str] = []
        for fuse in fuses:
            asyncio.run(run_life(world, self.scenario, fuse))
            if not fuse.dead:
                break
            crashes.append(CrashRecord(world))
            where.append(f"{'after' if fuse.after else 'before'} write {fuse.at}")
        else:
            asyncio.run(run_life(world, self.scenario, Fuse()))
        self.compare(world, crashes, ", then ".join(where))
        return len(crashes)

    def compare(self, world: SurvivingFiles, crashes: Sequence[CrashRecord], where: str) -> None:
        """What is in this world must be what an uninterrupted run leaves. Raises AssertionError."""
        found = CrashRecord(world)
        faults = self._faults(found, crashes)
        right, ends = self.uninterrupted.ends(), found.ends()
        faults += [
            f"{name}: {ends.get(name)}, not {right[name]}" for name in right if ends.get(name) != right[name]
        ]
        faults += [f"{name} should not be there" for name in ends if name not in right]
        missing, more = (
            self.uninterrupted.effects_done() - found.effects_done(),
            found.effects_done() - self.uninterrupted.effects_done(),
        )
        faults += [f"{one} was not done" for one in missing]
        faults += [f"{one} should not have been done" for one in more]
        assert not faults, "\n".join([f"{self.scenario.name}, crashed {where}:", *faults])

    def _along(self, *, after: bool) -> int:
        for number in count(1):
            if not self.crash(Fuse(number, after=after)):
                return number - 1
        raise AssertionError

    def _faults(self, found: CrashRecord, crashes: Sequence[CrashRecord]) -> list[str]:
        faults = found.problems()
        for crash in crashes:
            faults += [f"at the crash: {text}" for text in crash.problems()]
        faults += [f"letter {letter.id} was not read" for letter in found.letters]
        faults += [
            f"{one.name} is {one.state.status}" for one in found.histories.values() if not one.state.over
        ]
        counts, attempts = found.effect_counts(), found.attempts()
        for place, attempt in attempts.items():
            times = counts.pop((place.execution_id, attempt.key, place.attempt), 0)
            faults += _attempt_faults(place, attempt, times, len(crashes))
        faults += [f"{one} was done {times} times without a record" for one, times in counts.items()]
        faults += [
            f"{one} was done {n} times" for one, n in found.unkeyed_effects().items() if n > 1 + len(crashes)
        ]
        for crash in crashes:
            faults += _repeated(crash, found)
        return faults


def _attempt_faults(place: AttemptKey, attempt: RecordedAttempt, times: int, crashes: int) -> list[str]:
    where = "/".join(map(str, place))
    faults = []
    if attempt.deliveries != list(range(len(attempt.deliveries))) or len(attempt.deliveries) > 1 + crashes:
        faults.append(f"{where} was delivered as {attempt.deliveries}")
    if len(attempt.outcomes) != 1:
        faults.append(f"{where} has {len(attempt.outcomes)} outcomes")
    if not 1 <= times <= len(attempt.deliveries) and attempt.outcomes != ["worker_lost"]:
        faults.append(f"{where} was done {times} times in {len(attempt.deliveries)} deliveries")
    return faults


def _repeated(crash: CrashRecord, found: CrashRecord) -> list[str]:
    """What was recorded at the crash, and was done again after it."""
    before, after = crash.effect_counts(), found.effect_counts()
    recorded = [(place, one) for place, one in crash.attempts().items() if one.outcomes]
    names = [(place, (place.execution_id, one.key, place.attempt)) for place, one in recorded]
    again = ["/".join(map(str, place)) for place, key in names if before[key] != after[key]]
    known = crash.recorded_texts()
    again += [
        label
        for label, times in found.unkeyed_effects().items()
        if label in known and times != crash.unkeyed_effects()[label]
    ]
    return [f"{place} was recorded and done again" for place in again]
