"""Base64 of secrets that goes on in another line, or was cut off."""

import re
from collections.abc import Iterable, Iterator

LENGTH = 8
"""Characters by which the beginning of a secret is known, and its end."""
LINE = 60
"""Characters that a line has at least where there are several."""

_COMMON = str.maketrans("-_", "+/")
_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{LENGTH},}}")


class SplitBase64:
    """Knows what base64 makes of secrets, their cores."""

    def __init__(self, cores: Iterable[str]) -> None:
        self._cores = list(cores)
        self._long = "\n".join(core for core in self._cores if len(core) > LINE)
        """Only of these a whole line can be a part."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a run of base64 is a part of a core, ends with its beginning or begins with its end.

        `text` may be JSON, where the ends of lines are escaped.
        """
        if len(text) < LENGTH:
            return
        common = text.translate(_COMMON)
        near = [core for core in self._cores if core[:LENGTH] in common or core[-LENGTH:] in common]
        for match in _RUN.finditer(common) if near or self._long else ():
            start, run = match.start(), match[0]
            if run[0] in "nrt" and text[start - 1 : start] == "\\":
                start, run = start + 1, run[1:]
            if (len(run) > LENGTH * 2 and run in self._long) or any(_goes_on(run, core) for core in near):
                yield start, match.end()


def _goes_on(run: str, core: str) -> bool:
    begun, ended = run.rfind(core[:LENGTH]), run.find(core[-LENGTH:])
    return (begun >= 0 and core.startswith(run[begun:])) or (
        ended >= 0 and core.endswith(run[: ended + LENGTH])
    )
