"""Who is asked for work next, of all that wait."""

from noetl.engine.execution import ExecutionResources, LiveExecution
from noetl.model.run_rows import ReadyRun
from noetl.server.plane.ready_queue import Needs, ReadyQueue
from noetl.stores.results.memory_backend import MemoryResults

CPU, GPU, URGENT = ReadyRun(), ReadyRun(pool="gpu"), ReadyRun(priority=5)


async def _nothing(*_: object) -> None:
    raise AssertionError("nothing is read")


RESOURCES = ExecutionResources(
    MemoryResults(),
    _nothing,  # type: ignore[arg-type]  # it gives nothing, and is never called
    _nothing,  # type: ignore[arg-type]  # likewise
    lambda *_: None,
    lambda: None,
    lambda: 0,
)


def queue_of(**runs: tuple[ReadyRun, ...]) -> ReadyQueue:
    queue = ReadyQueue()
    for name, needs in runs.items():
        queue.add(LiveExecution(name, RESOURCES), needs)
    return queue


def names_asked(queue: ReadyQueue, *served: ReadyRun) -> list[list[str]]:
    levels = queue.levels(lambda needs: not needs.isdisjoint(served))
    return [[waiting.live.execution_id for waiting in level] for level in levels]


def test_the_more_urgent_come_first_and_the_others_in_turn_whatever_they_need() -> None:
    queue = queue_of(a=(CPU,), b=(GPU,), c=(CPU, GPU), d=(URGENT,), e=(CPU,))
    assert names_asked(queue, CPU, GPU, URGENT) == [["d"], ["a", "b", "c", "e"]]
    queue.end_turn("a")
    assert names_asked(queue, CPU, GPU, URGENT) == [["d"], ["b", "c", "e", "a"]]
    queue.end_turn("b")
    assert names_asked(queue, CPU, GPU, URGENT) == [["d"], ["c", "e", "a", "b"]]
    assert (queue.has_above(0), queue.has_above(5)) == (True, False)


def test_what_nobody_can_take_is_left_out() -> None:
    queue = queue_of(a=(CPU,), b=(GPU,), c=(CPU, GPU))
    assert names_asked(queue, GPU) == [["b", "c"]]
    assert names_asked(queue) == [[]]


def test_looks_do_not_grow_with_those_that_nobody_can_take() -> None:
    queue = queue_of(**{f"x{number}": (GPU,) for number in range(1_000)}, a=(CPU,))
    looks: list[Needs] = []

    def has_taker(needs: Needs) -> bool:
        looks.append(needs)
        return CPU in needs

    assert [[waiting.live.execution_id for waiting in level] for level in queue.levels(has_taker)] == [["a"]]
    assert len(looks) <= 4


def test_no_more_are_asked_when_the_last_taker_is_busy() -> None:
    queue = queue_of(a=(CPU,), b=(CPU,), c=(CPU,))
    names: list[str] = []
    for level in queue.levels(lambda _: len(names) < 2):
        names.extend(waiting.live.execution_id for waiting in level)
    assert names == ["a", "b"]


def test_one_that_waits_for_the_same_keeps_its_turn_and_else_goes_to_the_end() -> None:
    queue = queue_of(a=(CPU,), b=(CPU,))
    a, b = queue.get("a"), queue.get("b")
    assert a is not None
    assert b is not None
    queue.add(a, [CPU, CPU])
    assert names_asked(queue, CPU, GPU) == [["a", "b"]]
    queue.add(a, [CPU, GPU])
    assert names_asked(queue, CPU, GPU) == [["b", "a"]]
    queue.remove("b")
    queue.remove("b")
    assert (names_asked(queue, GPU), queue.get("b")) == ([["a"]], None)
    queue.remove("a")
    assert names_asked(queue, CPU, GPU) == []
