"""The tools: a package for each built-in kind, and what all of them stand on."""
