"""The names of things in an execution. They follow from the numbers of events, so a fork keeps them."""


def token_id(seq: int) -> str:
    """The token that the `TokenEnqueued` with this number made."""
    return f"t{seq}"


def run_id(seq: int) -> str:
    """The run that the `StepScheduled` with this number began."""
    return f"r{seq}"


def seq_of_id(name: str) -> int:
    """The number of the event that made this token or run."""
    return int(name[1:])


def iteration_id(run: str, index: int) -> str:
    """One iteration of a run's loop."""
    return f"{run}/{index}"


def task_run_id(run: str, iteration: int, task: str, visit: int, attempt: int) -> str:
    """One attempt of one task, for example `r12/7/fetch/2/1`."""
    return f"{run}/{iteration}/{task}/{visit}/{attempt}"
