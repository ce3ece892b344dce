"""Suites that every implementation of a port must pass. They need `noetl[test]`."""
