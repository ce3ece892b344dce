from collections.abc import Iterator

from noetl.dsl.document.kinds import Fault, Kind
from noetl.tools.host.input_rules import Inputs
from noetl.tools.objects.object_inputs import RESULT, ObjectInputs, check_object_inputs


class S3Inputs(ObjectInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation on a bucket of S3, or of Google Cloud Storage."""


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """What the action needs, at `s3://` and `gs://` addresses."""
    return check_object_inputs(
        inputs, lambda url: url.startswith(("s3://", "gs://")), hint="begin it with `s3://` or `gs://`"
    )


EXAMPLE = """\
name: download
kind: s3
action: get
url: s3://reports/2026/orders.csv
"""

KIND = Kind(
    name="s3",
    summary="Reads, writes, lists, copies or deletes objects in S3, a store that speaks it, or Google's.",
    result=RESULT,
    example=EXAMPLE,
    inputs=S3Inputs,
    spellings={"credential": "auth"},
    check=check,
    extra="s3",
    takes_references=frozenset({"content", "source", "args"}),
    reads=frozenset(),
    implementation="noetl.tools.s3.tool:S3Tool",
)
