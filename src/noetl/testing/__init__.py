"""For tests: a simulator of the engine, and suites that every implementation of a port must pass.

The suites need `noetl[test]`.
"""
