"""What documents see of the kind `convert`. Imported by every command, so it imports nothing heavy."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from noetl.dsl.document.kinds import Fault, Kind, TaskSpec

FACTORS = {
    "m": ("length", 1.0),
    "km": ("length", 1000.0),
    "mile": ("length", 1609.344),
    "g": ("mass", 1.0),
    "kg": ("mass", 1000.0),
    "pound": ("mass", 453.59237),
}
"""By unit, what it measures and how many of the first unit of that it is."""


class ConvertInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An amount and two units."""

    amount: Annotated[float, Meta(description="How much there is.")]
    from_: Annotated[str, Meta(description="Its unit, such as `km`.")] = field(name="from")
    to: Annotated[str, Meta(description="The unit that is wanted.")]


class ConvertSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a conversion."""

    digits: Annotated[
        Annotated[int, Meta(ge=0, le=15)] | None, Meta(description="Decimals to round to. Default 3.")
    ] = None


def check(inputs: Mapping[str, Any], _spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Units that exist and measure the same, where they are known before the task runs."""
    known = {}
    for key in ("from", "to"):
        unit = inputs.get(key)
        if not isinstance(unit, str) or "{{" in unit:
            continue
        if unit not in FACTORS:
            yield Fault(f"there is no unit `{unit}`", key=key, hint=f"there are {', '.join(FACTORS)}")
        else:
            known[key] = FACTORS[unit][0]
    if len(set(known.values())) > 1:
        yield Fault(
            f"a {known['from']} is no {known['to']}", key="to", hint="take units that measure the same"
        )


KIND = Kind(
    name="convert",
    summary="Converts an amount from one unit to another.",
    result="`{amount, unit}`.",
    example="name: distance\nkind: convert\namount: 26.2\nfrom: mile\nto: km\n",
    inputs=ConvertInputs,
    spec=ConvertSpec,
    effect="pure",
    defaults={"digits": 3},
    spellings={"unit": "to"},
    check=check,
    implementation="noetl_units.tool:ConvertTool",
)
