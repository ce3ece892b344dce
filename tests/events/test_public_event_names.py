"""What other rooms may rely on."""

import noetl.events
from noetl.events import iteration_id, run_id, task_run_id, token_id


def test_every_public_name_exists() -> None:
    assert all(hasattr(noetl.events, name) for name in noetl.events.__all__)
    assert noetl.events.__all__ == sorted(noetl.events.__all__, key=_by_kind)


def _by_kind(name: str) -> tuple[int, str]:
    """Constants first, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_ids_follow_from_the_numbers_of_events() -> None:
    assert token_id(11) == "t11"
    assert run_id(12) == "r12"
    assert iteration_id("r12", 7) == "r12/7"
    assert task_run_id("r12", 7, "fetch", 2, 1) == "r12/7/fetch/2/1"
