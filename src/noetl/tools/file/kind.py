from collections.abc import Iterator

from noetl.dsl.document.kinds import Fault, Kind
from noetl.tools.host.input_rules import Inputs
from noetl.tools.objects.object_inputs import RESULT, ObjectInputs, check_object_inputs


class FileInputs(ObjectInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation on files; paths are relative to the playbook."""


def _is_path(url: str) -> bool:
    return url.startswith("file://") or "://" not in url


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """What the action needs, at paths or `file://` addresses."""
    yield from check_object_inputs(inputs, _is_path, hint="give a path, relative to the playbook")
    if inputs.get("auth") is not None:
        yield Fault(
            "nobody signs in to files", key="auth", hint="the worker's own rights count; leave it out"
        )


EXAMPLE = """\
name: save
kind: file
action: put
url: out/report.json
content: { orders: 3, total: 20.5 }
"""

KIND = Kind(
    name="file",
    summary="Reads, writes, lists, copies or deletes files.",
    result=RESULT,
    example=EXAMPLE,
    inputs=FileInputs,
    spellings={"path": "url", "credential": "auth"},
    check=check,
    takes_references=frozenset({"content", "source", "args"}),
    reads=frozenset(),
    implementation="noetl.tools.file.tool:FileTool",
)
