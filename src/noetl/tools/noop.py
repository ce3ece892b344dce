from noetl.dsl.kinds import Kind

KIND = Kind(
    name="noop",
    summary="Does nothing: passes `_prev` through, or gives its `args` as the result.",
    effect="pure",
)
