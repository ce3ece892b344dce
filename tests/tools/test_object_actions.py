"""Every action that a document may name has its rule, and no other has."""

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import pytest

from noetl.tools.artifact import kind as artifact
from noetl.tools.objects import object_inputs


@pytest.mark.parametrize(
    ("inputs", "actions"),
    [
        (object_inputs.ObjectInputs, object_inputs.ACTIONS),
        (artifact.ArtifactInputs, artifact.ACTIONS),
    ],
)
def test_every_action_has_a_rule(inputs: type[Any], actions: Mapping[str, Any]) -> None:
    fields = get_type_hints(inputs)
    assert sorted(get_args(fields["action"])) == sorted(actions)
    for action in actions.values():
        assert action.names <= fields.keys()
