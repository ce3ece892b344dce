from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault, Kind
from noetl.tools.host.input_rules import Inputs, at_most_one


class SecretsInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Secrets to look up; their values can be used but are masked everywhere."""

    name: Annotated[
        str | None, Meta(description="Secret to look up. Default: the one named by the task's own label.")
    ] = None
    names: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None, Meta(description="Several secrets to look up.")
    ] = None
    provider: Annotated[
        str | None,
        Meta(
            description="Where to look: `keychain`, `store`, `env`, `file` or `vault`. "
            "Default: the keychain, else the credential store."
        ),
    ] = None


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """One list of names."""
    return at_most_one(inputs, "name", "names", hint="put all of them into `names`")


EXAMPLE = """\
name: keys
kind: secrets
names: [api_key, signing_key]
provider: env
"""

KIND = Kind(
    name="secrets",
    summary="Looks up secrets; their values are never stored or shown.",
    result="A mapping of names to values, which can be used, and is masked wherever it would be shown.",
    example=EXAMPLE,
    inputs=SecretsInputs,
    check=check,
    reads=frozenset(),
    implementation="noetl.tools.secrets.tool:SecretsTool",
)
