"""Pictures of playbooks, made off the loop and kept by the hash of what they show."""

import asyncio
from collections import OrderedDict
from typing import TypeAlias

from noetl.dsl.document.playbook import Playbook, Step
from noetl.graph.net import net_of
from noetl.ports.page_api import NetAnswer

MOST_STEPS = 20_000
"""Of all pictures that are kept: one takes about a kilobyte for each step."""


_Key: TypeAlias = tuple[str, tuple[int, ...]]


class NetCache:
    """Two who ask for the same picture at once wait for the same one."""

    def __init__(self) -> None:
        self._nets: OrderedDict[_Key, asyncio.Task[NetAnswer]] = OrderedDict()
        self._sizes: dict[_Key, int] = {}

    async def net(self, playbook: Playbook) -> NetAnswer:
        """In a thread: a layout takes a second for a thousand steps, and others are answered meanwhile."""
        key = _key_of(playbook)
        task = self._nets.get(key)
        if task is None:
            task = self._nets[key] = asyncio.create_task(asyncio.to_thread(net_of, playbook))
            self._sizes[key] = len(playbook.workflow)
            self._make_room(key)
        self._nets.move_to_end(key)
        try:
            return await asyncio.shield(task)  # who asked may go; others may have come
        except Exception:
            self._nets.pop(key, None)
            self._sizes.pop(key, None)
            raise

    def _make_room(self, newest: _Key) -> None:
        while sum(self._sizes.values()) > MOST_STEPS and next(iter(self._nets)) != newest:
            oldest, _ = self._nets.popitem(last=False)
            del self._sizes[oldest]


def _key_of(playbook: Playbook) -> _Key:
    """What is said in the same words may stand in other lines, and a net tells lines."""
    lines = (line for step in playbook.workflow for line in (step.position.line, *_task_lines(step)))
    return playbook.hash, tuple(lines)


def _task_lines(step: Step) -> list[int]:
    return [task.position.line for task in step.tasks]
