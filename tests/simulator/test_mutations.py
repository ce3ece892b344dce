"""The simulator finds the bugs that are planted."""

from collections.abc import Callable
from itertools import chain

import pytest

from noetl.testing.simulator.audit import AuditFailure
from noetl.testing.simulator.scenario import SEEDS_PER_PLAYBOOK, scenario_of
from noetl.testing.simulator.simulation import Simulator
from tests.simulator import test_scripted_worlds as scripted
from tests.simulator.mutations import MUTATIONS, Mutation, planted
from tests.simulator.test_seeds import REMEMBERED
from tests.simulator.test_seeds import SEEDS as FIXED_SEEDS

SEEDS = [playbook * SEEDS_PER_PLAYBOOK + playbook % SEEDS_PER_PLAYBOOK for playbook in range(200)]
"""Each with another playbook."""
KNOWN_SEEDS = {
    "a lost shard leaves its iteration in flight": 5,
    "a snapshot forgets the order of queues": 170,
    "messages are not kept": 0,
    "messages that were sent stay": 32,
    "what was delivered stays in the outbox": 0,
    "the next timer is forgotten": 15,
    "a server that starts again offers nothing": 42,
    "the fence is not checked": 0,
    "any lost lease ends the present one": 58,
    "results stand in order of arrival": 138,
    "timers stay in the store": 10,
    "what a worker never saw stays its own": 5,
    "a report is applied twice": 48,
    "a session never ends": 5,
    "nobody wakes who waits for a time": 10,
    "a lost attempt stays in flight": 15,
    "what is given back is not taken": 15,
    "a server that starts again forgets who waits for a time": 47,
    "what an append left over is not decided": 5,
    "a snapshot is one event early": 5,
    "a snapshot is one event late": 5,
    "a heartbeat keeps nothing": 15,
    "a signal is used twice": 15,
    "a worker gives up runs and says nothing": 15,
    "of several acknowledgements one is sent": 15,
    "losses are carried to the next task": 15,
    "reducers in order of arrival": 15,
    "the remainder of a join is kept": 20,
    "a join of any takes every token": 160,
    "a resume counts as reported": 15,
    "a poll keeps its key": 24,
    "a discarded token is still watched": 40,
    "a redelivery is a new attempt": 46,
    "a report is acknowledged before it is durable": 53,
    "one acknowledgement counts for all that was reported": 565,
    "contributions are written as they come": 15,
    "a retried child is the child before": 60,
    "a worker waits a thousand times too long": 63,
    "a worker that leaves waits for what it has lost": 64,
    "a lost attempt counts as none": 93,
    "a run is its worker's though that has left it": 122,
    "a session has credit whatever it owns": 127,
    "a failed branch holds no join back": 284,
    "a join does not see tokens on their way in": 300,
    "cancel forgets suspended runs": 314,
    "a run that ended still listens": 312,
    "a retry leaves what came of the failure": 388,
    "a retry forgets failed iterations": 632,
    "what failed is settled by a limit": 668,
}
"""Seeds that showed a bug before, tried first: most of a search is the seeds that show nothing."""


KNOWN_SCRIPTS: dict[str, Callable[[], None]] = {
    "the version is not compared": scripted.test_what_somebody_else_has_written_meanwhile_stays_and_the_rest_is_decided_again,
    "a report with a gap before it is taken": scripted.test_reports_that_overtake_others_are_recorded_in_their_order,
    "a pause that comes too late stays": scripted.test_so_does_one_that_was_paused_too_late,
    "resume leaves paused runs asleep": scripted.test_a_run_that_was_paused_goes_on_when_its_execution_does,
    "a worker gets a run without its last result": scripted.test_a_run_that_was_paused_goes_on_when_its_execution_does,
    "a run sees later writes to ctx": scripted.test_a_run_sees_nothing_that_others_write_after_it_began,
    "a write reaches those who pinned the ctx": scripted.test_a_run_sees_nothing_that_others_write_after_it_began,
    "the last branch to end gives the result": scripted.test_the_last_step_gives_the_result_whenever_it_ends,
    "an older command takes the run that was claimed since": scripted.test_a_command_that_comes_once_more_does_not_take_the_run_away_that_was_claimed_since,
    "a worker that comes back hears nothing": scripted.test_a_worker_that_comes_back_hears_what_it_missed,
    "a lease lives from the answer to its heartbeat": scripted.test_a_lease_lives_from_when_its_heartbeat_was_sent,
    "what is in the outbox when a server starts stays there": scripted.test_what_a_server_left_in_the_outbox_the_next_one_delivers,
    "a worker that leaves while it registers has slots": scripted.test_a_worker_that_is_told_to_leave_while_it_registers_gets_no_more_runs,
}
"""Bugs that need a moment which few seeds meet."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_a_planted_bug_is_found(mutation: Mutation) -> None:
    if (script := KNOWN_SCRIPTS.get(mutation.name)) is not None:
        with planted(mutation), pytest.raises((AuditFailure, AssertionError)):
            script()
        return
    with planted(mutation):
        simulator = Simulator()
        seeds = chain([KNOWN_SEEDS[mutation.name]] if mutation.name in KNOWN_SEEDS else [], SEEDS)
        failing_seed = next((seed for seed in seeds if simulator.check(scenario_of(seed)).problem), None)
    assert failing_seed is not None, f"no seed shows that {mutation.name}"
    assert not Simulator().check(scenario_of(failing_seed)).problem


def test_there_are_many_and_each_has_a_name_of_its_own() -> None:
    names = {mutation.name for mutation in MUTATIONS}
    assert len(names) == len(MUTATIONS) >= 70
    assert names.issuperset({*KNOWN_SEEDS, *KNOWN_SCRIPTS})


def test_whatever_has_shown_one_is_tried_without_it_too() -> None:
    assert {*range(FIXED_SEEDS), *REMEMBERED}.issuperset(KNOWN_SEEDS.values())
