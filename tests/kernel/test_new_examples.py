"""Some laws of the kernel and of expressions, each run of the tests with examples that nobody has tried."""

from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.expr import test_expression_laws
from tests.kernel import test_kernel_fast_paths, test_laws, test_reference_laws
from tests.new_seeds import RUN_SEED

EXAMPLES = 15
LAWS_AT_ONCE = 5


def laws_in(*modules: ModuleType) -> list[Callable[..., Any]]:
    return [
        law
        for module in modules
        for law in vars(module).values()
        if is_hypothesis_test(law) and not getattr(law, "pytestmark", None)
    ]


LAWS = laws_in(test_laws, test_reference_laws, test_kernel_fast_paths, test_expression_laws)


@pytest.mark.parametrize("number", range(LAWS_AT_ONCE))
def test_a_law_holds_for_new_examples(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    law = Random(RUN_SEED).sample(LAWS, LAWS_AT_ONCE)[number]  # noqa: S311 - it must be repeatable
    # Where `@seed` and `@settings` put them; a second `@settings` would be refused.
    few = settings(law._hypothesis_internal_use_settings, max_examples=EXAMPLES)  # type: ignore[attr-defined]  # set by `@given`
    monkeypatch.setattr(law, "_hypothesis_internal_use_settings", few)
    monkeypatch.setattr(law, "_hypothesis_internal_use_seed", RUN_SEED, raising=False)
    law()
