"""The values that cross every border of the system: what JSON can say, and nothing else."""

from typing import TypeAlias

ScalarValue: TypeAlias = bool | int | float | str | None

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
