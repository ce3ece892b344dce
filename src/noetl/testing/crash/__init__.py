"""Proves that nothing is lost: a playbook is crashed at every write, resumed, and compared.

    crashes = Crashes(Scenario(name="chain", text=PLAYBOOK), tmp_path)
    crashes.at_every_write()

A run that was never interrupted says what is right. Then, for every write there is, a process dies right
before it, and another one right after it, before anybody knows. The next process goes on with the same
files. In the end every execution must have the same status, result, ctx, steps and discarded tokens, and
the world must have seen the same effects: an attempt that was recorded never again, one in flight at most
once more, with the same idempotency key.

A process that dies loses nothing that it wrote, but the loss of power does: `at_every_sync` leaves the next
process a disk that has what was synced, and of the rest nothing or any part.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from noetl.events.event import Event
from noetl.testing.crash.crash_record import AttemptKey, CrashRecord, RecordedAttempt
from noetl.testing.crash.fuse import Fuse
from noetl.testing.crash.power_loss import PowerLoss, record_losses
from noetl.testing.crash.process_life import Scenario, SurvivingFiles, empty_store, run_life

__all__ = ["Crashes", "Scenario"]


class _Seen(NamedTuple):
    """What the loss of power must not undo.

    The number of events that each execution was said to have, and the files beside the home: effects, too.
    """

    acknowledged: dict[str, int]
    world: dict[str, bytes]


class Crashes:
    """Crashes of one scenario, each with files of its own below `folder`."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self._folder = folder
        self._folder_numbers = count()
        self._store = empty_store(folder / "empty.db")
        files = self.new_files()
        asyncio.run(run_life(files, scenario, Fuse()))
        self.uninterrupted = CrashRecord(files)
        faults = self._faults(self.uninterrupted, [])
        assert not faults, "\n".join(["without any crash:", *faults])

    def new_files(self) -> SurvivingFiles:
        """New files, in which nothing has happened."""
        return SurvivingFiles.create(self._next_folder(), self.scenario.files, self._store)

    def at_every_write(self) -> int:
        """Crashes before and after each write, once; the number of crashes. Raises AssertionError."""
        return sum(self._crash_along(after=after) for after in (False, True))

    def at_every_two_writes(self) -> int:
        """For each write, crashes there, and the resumed process at each of its writes, too."""
        crashes = 0
        for first in count(1):
            for second in count(1):
                died = self.crash(Fuse(first, after=first % 2 == 0), Fuse(second, after=second % 2 == 0))
                crashes += died
                # The first fuse did not blow: there is no such write, so every pair has been tried.
                if not died:
                    return crashes
                if died == 1:
                    break
        raise AssertionError

    def at_every_sync(self, disks: int = 1) -> int:
        """Loses the power before each sync of a run that begins with nothing, and after the last; how often.

        Each time once so that what was not synced is gone, and `disks` times so that any part of it is there.
        Raises AssertionError.
        """
        files = SurvivingFiles.create(self._next_folder(), self.scenario.files)
        losses = self._record_losses(files, disks)
        for number, loss in enumerate(losses, 1):
            crash_point = f"by loss of power {number} of {len(losses)}"
            try:
                crash = _leave_disk(files, loss)
                asyncio.run(run_life(files, self.scenario, Fuse()))
                self.compare(files, [crash], crash_point)
            except Exception as error:  # raised again, with where it was
                error.add_note(f"{self.scenario.name}, crashed {crash_point}")
                raise
        return len(losses)

    def crash(self, *fuses: Fuse) -> int:
        """One process after the other, and a last one that does not crash; how many did."""
        files = self.new_files()
        crashes: list[CrashRecord] = []
        crash_points: list[str] = []
        for fuse in fuses:
            asyncio.run(run_life(files, self.scenario, fuse))
            if not fuse.dead:
                break
            crashes.append(CrashRecord(files))
            crash_points.append(f"{'after' if fuse.after else 'before'} write {fuse.at}")
        else:
            asyncio.run(run_life(files, self.scenario, Fuse()))
        self.compare(files, crashes, ", then ".join(crash_points))
        return len(crashes)

    def compare(self, files: SurvivingFiles, crashes: Sequence[CrashRecord], where: str) -> None:
        """What these files hold must be what an uninterrupted run leaves. Raises AssertionError."""
        record = CrashRecord(files)
        faults = self._faults(record, crashes)
        expected, ends = self.uninterrupted.ends(), record.ends()
        faults += [
            f"{name}: {ends.get(name)}, not {expected[name]}"
            for name in expected
            if ends.get(name) != expected[name]
        ]
        faults += [f"{name} should not be there" for name in ends if name not in expected]
        missing_effects, extra_effects = (
            self.uninterrupted.effects_done() - record.effects_done(),
            record.effects_done() - self.uninterrupted.effects_done(),
        )
        faults += [f"{effect} was not done" for effect in missing_effects]
        faults += [f"{effect} should not have been done" for effect in extra_effects]
        assert not faults, "\n".join([f"{self.scenario.name}, crashed {where}:", *faults])

    def _next_folder(self) -> Path:
        return self._folder / f"{self.scenario.name}-{next(self._folder_numbers)}"

    def _record_losses(self, files: SurvivingFiles, disks: int) -> list[PowerLoss[_Seen]]:
        acknowledged: dict[str, int] = {}

        def acknowledge(execution_id: str, event: Event) -> None:
            acknowledged[execution_id] = event.seq

        def look() -> _Seen:
            world = {path.name: path.read_bytes() for path in files.folder.iterdir() if path.is_file()}
            return _Seen(dict(acknowledged), world)

        with record_losses(files.folder, look, disks) as losses:
            asyncio.run(run_life(files, self.scenario, Fuse(), acknowledge))
        return losses

    def _crash_along(self, *, after: bool) -> int:
        for number in count(1):
            if not self.crash(Fuse(number, after=after)):
                return number - 1
        raise AssertionError

    def _faults(self, record: CrashRecord, crashes: Sequence[CrashRecord]) -> list[str]:
        faults = record.problems()
        for crash in crashes:
            faults += [f"at the crash: {text}" for text in crash.problems()]
        faults += [f"letter {message.id} was not read" for message in record.messages]
        faults += [
            f"{execution.name} is {execution.state.status}"
            for execution in record.executions.values()
            if not execution.state.over
        ]
        counts, attempts = record.effect_counts(), record.attempts()
        for attempt_key, attempt in attempts.items():
            times = counts.pop((attempt_key.execution_id, attempt.key, attempt_key.attempt), 0)
            faults += _attempt_faults(attempt_key, attempt, times, len(crashes))
        faults += [f"{effect} was done {times} times without a record" for effect, times in counts.items()]
        faults += [
            f"{label} was done {n} times"
            for label, n in record.unkeyed_effects().items()
            if n > 1 + len(crashes)
        ]
        for crash in crashes:
            faults += _repeated_faults(crash, record)
        return faults


def _leave_disk(files: SurvivingFiles, loss: PowerLoss[_Seen]) -> CrashRecord:
    """Makes the files those that are left; what they say. Raises AssertionError if something is lost."""
    loss.image.restore(files.folder)
    for name, data in loss.seen.world.items():
        (files.folder / name).write_bytes(data)
    files.home.make()
    record = CrashRecord(files)
    for execution_id, events in loss.seen.acknowledged.items():
        number = len(record.executions[execution_id].events) if execution_id in record.executions else 0
        assert number >= events, f"{execution_id} has {number} events, {events} were acknowledged"
    return record


def _attempt_faults(attempt_key: AttemptKey, attempt: RecordedAttempt, times: int, crashes: int) -> list[str]:
    path = "/".join(map(str, attempt_key))
    faults = []
    if attempt.deliveries != list(range(len(attempt.deliveries))) or len(attempt.deliveries) > 1 + crashes:
        faults.append(f"{path} was delivered as {attempt.deliveries}")
    if len(attempt.outcomes) != 1:
        faults.append(f"{path} has {len(attempt.outcomes)} outcomes")
    if not 1 <= times <= len(attempt.deliveries) and attempt.outcomes != ["worker_lost"]:
        faults.append(f"{path} was done {times} times in {len(attempt.deliveries)} deliveries")
    return faults


def _repeated_faults(crash: CrashRecord, record: CrashRecord) -> list[str]:
    """What was recorded at the crash, and was done again after it."""
    before, after = crash.effect_counts(), record.effect_counts()
    recorded = [
        (attempt_key, (attempt_key.execution_id, attempt.key, attempt_key.attempt))
        for attempt_key, attempt in crash.attempts().items()
        if attempt.outcomes
    ]
    repeated = ["/".join(map(str, attempt_key)) for attempt_key, key in recorded if before[key] != after[key]]
    recorded_texts = crash.recorded_texts()
    repeated += [
        label
        for label, times in record.unkeyed_effects().items()
        if label in recorded_texts and times != crash.unkeyed_effects()[label]
    ]
    return [f"{attempt} was recorded and done again" for attempt in repeated]
