"""What is wrong with a playbook beyond its shape. Each check reads the playbook and reports."""

from collections.abc import Callable

from noetl.dsl.playbook import Playbook
from noetl.dsl.reader import Context, Read

Check = Callable[[Playbook, Context], None]

CHECKS: tuple[Check, ...] = ()


def run_checks(read: Read) -> None:
    """Runs every check; what they find is in the context."""
    if read.playbook is None:
        return
    for check in CHECKS:
        check(read.playbook, read.context)
