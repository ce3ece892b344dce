"""The names of things in events follow from their numbers."""

from noetl.events.identifiers import iteration_id, run_id, task_run_id, token_id


def test_ids_follow_from_the_numbers_of_events() -> None:
    assert token_id(11) == "t11"
    assert run_id(12) == "r12"
    assert iteration_id("r12", 7) == "r12/7"
    assert task_run_id("r12", 7, "fetch", 2, 1) == "r12/7/fetch/2/1"
