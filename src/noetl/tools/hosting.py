"""The tools of one worker."""

from collections.abc import Callable
from typing import Literal

from noetl.ports.tool import Tool
from noetl.tools.noop import KIND, NoopTool
from noetl.tools.python_tool import PythonTool

_MAKERS: dict[str, Callable[[], Tool]] = {"noop": NoopTool, "python": PythonTool}


class Tools:
    """Made when they are first used."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def effect(self, kind: str) -> Literal["pure", "write"]:
        return KIND.effect if kind == KIND.name else "write"

    def get(self, kind: str) -> Tool | None:
        if kind not in self._tools and kind in _MAKERS:
            self._tools[kind] = _MAKERS[kind]()
        return self._tools.get(kind)

    async def close(self) -> None:
        for tool in self._tools.values():
            await tool.close()
