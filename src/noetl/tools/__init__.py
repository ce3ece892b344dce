"""The tools: a package for each built-in kind, and what all of them stand on."""

from noetl.tools.kind_registry import BUILTIN, builtin_kinds

__all__ = ["BUILTIN", "builtin_kinds"]
