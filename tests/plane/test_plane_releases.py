"""Servers and workers of releases that follow each other, as while they are replaced one by one.

What the other side does not know it passes over, and what it does not say has a default. Whoever needs more than
that has to raise `PROTOCOL`: then the other side is told which release to use.
"""

import msgspec
import pytest
from msgspec import Struct

from noetl.ports import control

PARTS: list[type[Struct]] = [
    part
    for part in vars(control).values()
    if isinstance(part, type) and issubclass(part, Struct) and part.__module__ == control.__name__
]
REQUIRED = {
    "RunLease": "execution run fence",
    "Message": "",
    "Register": "protocol",
    "Registered": "session ttl",
    "Rejected": "code message",
    "ClaimCredit": "slots",
    "RunCommand": "execution fence playbook run",
    "Work": "commands",
    "RunReport": "execution run fence start events",
    "PrintedText": "execution source text",
    "WorkerReport": "no",
    "Ack": "no verdicts",
    "RunNews": "execution run fence",
    "News": "items",
    "Drain": "",
    "Heartbeat": "",
    "Beaten": "known",
    "Release": "runs",
    "Released": "",
    "FetchPlaybook": "hash",
    "FetchWorkload": "execution",
    "FetchCredential": "name",
    "SealValues": "execution values",
    "FetchSealed": "execution number",
    "FetchGrant": "execution key method",
    "ArtifactRequest": "execution run task action",
    "CheckNeeds": "playbook pool",
    "NeedsChecked": "playbook pool",
    "FetchedPlaybook": "text name",
    "FetchedValue": "",
    "FetchFailed": "code message",
}
"""What version 1 of the protocol cannot do without."""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_fields_that_came_later_can_be_left_away(part: type[Struct]) -> None:
    required = [field.encode_name for field in msgspec.structs.fields(part) if field.required]
    assert required == REQUIRED[part.__name__].split(), "a new field needs a default, or another `PROTOCOL`"


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_fields_of_a_later_release_are_passed_over(part: type[Struct]) -> None:
    assert not part.__struct_config__.forbid_unknown_fields
