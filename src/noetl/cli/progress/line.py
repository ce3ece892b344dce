"""What is worth a line while an execution runs."""

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

LineKind: TypeAlias = Literal["started", "done", "failed", "retry", "loop", "wait", "detail"]
"""`detail` only where every task and decision was asked for."""


class ProgressLine(Struct):
    """Something that happened at `ts` in a step, or, if that is empty, to the execution.

    `child` names the execution if it is not the one that was asked for. `void`: no longer worth it.
    """

    kind: LineKind
    ts: int
    step: str
    text: str
    child: str = ""
    void: bool = False

    def sentence(self) -> str:
        """For a plain line: `step fetch done in 0.1 s`."""
        subject = f"step {self.step}" if self.step else "execution"
        match self.kind:
            case "started":
                text = subject
            case "done":
                text = f"{subject} done in {self.text}"
            case "failed":
                text = f"{subject} failed: {self.text}"
            case "retry" | "loop" | "wait" | "detail":
                text = f"{subject}: {self.text}"
            case _:
                assert_never(self.kind)
        return f"[{self.child}] {text}" if self.child else text
