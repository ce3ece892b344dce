"""What is wrong with a playbook beyond its shape. Each check reads the playbook and reports."""

from collections.abc import Callable

from noetl.dsl.checks.concurrent_writes import check_concurrent_writes
from noetl.dsl.checks.flow.guard_verdicts import forget_verdicts
from noetl.dsl.checks.known_shapes import check_known_shapes
from noetl.dsl.checks.namespaces import check_namespaces
from noetl.dsl.checks.pipeline_checks import check_jumps, check_parallel_writes, check_unmatched_errors
from noetl.dsl.checks.soundness import (
    check_any_on_cycles,
    check_arcs,
    check_exits,
    check_joins,
    check_reachability,
)
from noetl.dsl.checks.swallowed_failures import check_swallowed_failures
from noetl.dsl.checks.tool_inputs import check_credentials, check_pasted_sql, check_secrets
from noetl.dsl.checks.unset_names import check_step_names, check_unset_names
from noetl.dsl.document.context import DocumentContext
from noetl.dsl.document.playbook import Playbook

Check = Callable[[Playbook, DocumentContext], None]

CHECKS: tuple[Check, ...] = (
    check_reachability,
    check_exits,
    check_arcs,
    check_swallowed_failures,
    check_any_on_cycles,
    check_joins,
    check_jumps,
    check_unmatched_errors,
    check_parallel_writes,
    check_namespaces,
    check_credentials,
    check_pasted_sql,
    check_secrets,
    check_step_names,
    check_unset_names,
    check_concurrent_writes,
    check_known_shapes,
)


def run_checks(playbook: Playbook, context: DocumentContext) -> None:
    """Runs every check; what they find is in the context."""
    try:
        for check in CHECKS:
            check(playbook, context)
    finally:
        forget_verdicts()
