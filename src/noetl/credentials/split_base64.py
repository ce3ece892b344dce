"""Base64 of secrets that goes on in another line, or was cut off."""

import re
from collections.abc import Iterable, Iterator

END_LENGTH = 8
"""Characters by which the beginning of a secret is known, and its end."""
MIN_LINE_LENGTH = 60
"""Characters that a line has at least where there are several."""

_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{END_LENGTH},}}")


class SplitBase64:
    """Knows what base64 makes of secrets, their cores."""

    def __init__(self, cores: Iterable[str]) -> None:
        self._cores = list(cores)
        self._long_cores = "\n".join(core for core in self._cores if len(core) > MIN_LINE_LENGTH)
        """Only of these a whole line can be a part."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a run of base64 is a part of a core, ends with its beginning or begins with its end.

        `text` may be JSON, where the ends of lines are escaped.
        """
        if len(text) < END_LENGTH:
            return
        standard = text.translate(_STANDARD_ALPHABET)
        # The fast path: without an end of a core in the text, and without long cores, no run is looked at.
        likely = [
            core for core in self._cores if core[:END_LENGTH] in standard or core[-END_LENGTH:] in standard
        ]
        for match in _RUN.finditer(standard) if likely or self._long_cores else ():
            start, run = match.start(), match[0]
            # The letter of an escape such as `\n` is no base64.
            if run[0] in "nrt" and text[start - 1 : start] == "\\":
                start, run = start + 1, run[1:]
            inner_line = len(run) > END_LENGTH * 2 and run in self._long_cores
            if inner_line or any(_continues(run, core) for core in likely):
                yield start, match.end()


def _continues(run: str, core: str) -> bool:
    """Whether a run ends with the beginning of a core, or begins with its end."""
    beginning, ending = run.rfind(core[:END_LENGTH]), run.find(core[-END_LENGTH:])
    return (beginning >= 0 and core.startswith(run[beginning:])) or (
        ending >= 0 and core.endswith(run[: ending + END_LENGTH])
    )
