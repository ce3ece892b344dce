"""Which line a failure is about: of the playbook, or of a script."""

import os
import re
from pathlib import Path

from noetl.dsl.document.source import SourceLines
from noetl.dsl.failure_positions import Failure, read_failure_positions
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.failed_attempts import FailedAttempt
from noetl.events.bodies import TaskProcessed
from noetl.loader import installed_kinds
from noetl.model.outcome import ErrorInfo
from noetl.ports.http_api import FailureLocation

CODE = "<code>"
"""What tracebacks call Python code that stands in the playbook."""

_PACKAGE = str(Path(__file__).parents[2]) + os.sep
"""Where this package is installed: what fails in there is no fault of anything that a user could look at."""

_FRAME = re.compile(r'^( *)File "([^"]*)", line (\d+)', re.MULTILINE)
_MARKERS = re.compile(r" *[~^]+")


class FailureLocator:
    """Finds what a failure is about, in the document that its execution ran, if that is at hand."""

    def __init__(
        self, error: ErrorInfo, source: PlaybookSource | None, attempt: FailedAttempt | None
    ) -> None:
        self.attempt = attempt
        processed = attempt.processed if attempt is not None else None
        rule = processed.rule if processed is not None else None
        inputs = (attempt.started.input if attempt is not None else None) or {}
        self._source = source
        self._failure = Failure(error, rule, inputs)
        self.traceback = _traceback_of(processed, self._failure)
        self._positions = None
        if source is not None:
            self._positions = read_failure_positions(
                source.text, source.name, installed_kinds(), source.dialect
            )

    def location(self) -> FailureLocation | None:
        """The line of the code that raised, else what the document has to do with it."""
        frame = _own_frame(self.traceback)
        if frame is not None and frame.file != CODE and not frame.file.startswith(_PACKAGE):
            return frame
        if self._positions is None or self._source is None:
            return None
        position = self._positions.position(self._failure)
        if frame is not None and frame.file == CODE:
            code = self._positions.code_position(self._failure, frame.line, frame.column)
            position = code or position
        if position is None:
            return None
        lines = list(SourceLines(self._source.text))
        return FailureLocation(
            file=self._source.name,
            line=position.line,
            column=position.column,
            text=lines[position.line - 1],
            in_playbook=True,
        )

    def traceback_text(self) -> str:
        """The traceback of Python code, with the lines of the playbook."""
        return _FRAME.sub(self._frame_in_playbook, self.traceback.rstrip())

    def _frame_in_playbook(self, match: re.Match[str]) -> str:
        indent, file, line = match.groups()
        if file != CODE or self._positions is None or self._source is None:
            return match[0]
        position = self._positions.code_position(self._failure, int(line), 1)
        return f'{indent}File "{self._source.name}", line {position.line}' if position else match[0]


def _traceback_of(processed: TaskProcessed | None, failure: Failure) -> str:
    """The traceback of a tool's or a task's own code, if that is what failed.

    An expression may have failed after it, which judged its outcome.
    """
    traceback = failure.details.get("traceback")
    outcome = processed.outcome if processed is not None else None
    if traceback is None and outcome is not None and outcome.error is not None:
        py = outcome.helpers.get("py", {}) if outcome.error.kind == failure.kind else {}
        traceback = py.get("traceback")
    return traceback if isinstance(traceback, str) else ""


def _own_frame(traceback: str) -> FailureLocation | None:
    """The innermost frame of the task's own code, whose outermost one every traceback begins with."""
    last = traceback.rpartition("Traceback (most recent call last):")[2]
    frames = list(_FRAME.finditer(last))
    own = [frame for frame in frames if frame[2] == frames[0][2]]
    if not own:
        return None
    frame = own[-1]
    _, text, markers, *_ = [*last[frame.start() :].split("\n"), "", ""]
    indent = len(text) - len(text.lstrip())
    column = 1
    if _MARKERS.fullmatch(markers):
        column = len(markers) - len(markers.lstrip()) - indent + 1
    return FailureLocation(
        file=frame[2], line=int(frame[3]), column=max(column, 1), text=text.strip(), in_playbook=False
    )
