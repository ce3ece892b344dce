"""The executions that a process has in memory, and who waits for their ends."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterator, Set
from itertools import islice

from noetl.engine.execution import LiveExecution
from noetl.engine.listener import EngineListener
from noetl.kernel.state.execution_state import ExecutionState


class ExecutionRegistry:
    """Live executions by id, those that nothing happened to for longest first, and which belong together."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, LiveExecution] = OrderedDict()
        self._weights: dict[str, int] = {}
        self.weight = 0
        """Bytes that their states take, roughly."""
        self._families: Counter[str] = Counter()
        self._children: dict[str, dict[str, LiveExecution]] = {}

    def add(self, live: LiveExecution) -> None:
        """A second time changes nothing."""
        if live.execution_id in self._by_id:
            return
        self._by_id[live.execution_id] = live
        self._weigh(live.execution_id, live.weight)
        self._families[live.root] += 1
        if (parent := live.origin.parent) is not None:
            self._children.setdefault(parent.execution_id, {})[live.execution_id] = live

    def remove(self, live: LiveExecution) -> None:
        """A second time changes nothing."""
        if self._by_id.pop(live.execution_id, None) is None:
            return
        self._weigh(live.execution_id, 0)
        self._families[live.root] -= 1
        if not self._families[live.root]:
            del self._families[live.root]
        parent = live.origin.parent
        if parent is not None and (siblings := self._children.get(parent.execution_id)) is not None:
            siblings.pop(live.execution_id, None)
            if not siblings:
                del self._children[parent.execution_id]

    def get(self, execution_id: str) -> LiveExecution | None:
        return self._by_id.get(execution_id)

    def touch(self, live: LiveExecution) -> None:
        """Something happened to it; nothing where it is not in memory."""
        if live.execution_id in self._by_id:
            self._by_id.move_to_end(live.execution_id)
            self._weigh(live.execution_id, live.weight)

    def _weigh(self, execution_id: str, weight: int) -> None:
        self.weight += weight - self._weights.pop(execution_id, 0)
        if weight:
            self._weights[execution_id] = weight

    def oldest(self, count: int) -> list[LiveExecution]:
        """So many at most to which nothing has happened for longest."""
        return list(islice(self._by_id.values(), count))

    def has_family(self, root: str) -> bool:
        """Whether anything lives that came from this execution, itself included."""
        return root in self._families

    def children_of(self, execution_id: str) -> list[LiveExecution]:
        return list(self._children.get(execution_id, {}).values())

    def without(self, execution_ids: Set[str]) -> Set[str]:
        """Those of them that are not here."""
        return execution_ids - self._by_id.keys()

    def __contains__(self, execution_id: str) -> bool:
        return execution_id in self._by_id

    def __iter__(self) -> Iterator[LiveExecution]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)


class EndWaiters(EngineListener):
    """The ends of executions that somebody waits for: that of one comes when all that it started is over."""

    def __init__(self, registry: ExecutionRegistry) -> None:
        self._registry = registry
        self._ends: dict[str, asyncio.Future[ExecutionState]] = {}
        self._last_states: dict[str, ExecutionState] = {}

    def expect(self, execution_id: str) -> None:
        """A second time changes nothing, unless the first end has come."""
        if (end := self._ends.get(execution_id)) is not None and not end.done():
            return
        self._ends[execution_id] = asyncio.get_running_loop().create_future()
        self._last_states.pop(execution_id, None)

    def forget(self, execution_id: str) -> None:
        """Nobody waits for its end any more. A second time changes nothing."""
        self._ends.pop(execution_id, None)
        self._last_states.pop(execution_id, None)

    def end_of(self, execution_id: str) -> asyncio.Future[ExecutionState]:
        """The state at its end. Raises KeyError if it was not expected."""
        return self._ends[execution_id]

    def last_state(self, execution_id: str) -> ExecutionState | None:
        """Its state when it was over itself, though not all that it started."""
        return self._last_states.get(execution_id)

    def over(self, live: LiveExecution) -> None:
        if live.execution_id in self._ends:
            self._last_states[live.execution_id] = live.state
        end, last_state = self._ends.get(live.root), self._last_states.get(live.root)
        if end is None or end.done() or last_state is None:
            return
        if not self._registry.has_family(live.root):
            end.set_result(last_state)
