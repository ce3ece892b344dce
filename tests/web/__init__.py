"""A package, so that all its files share a browser."""
