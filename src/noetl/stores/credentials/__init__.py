"""Credentials at rest: sealed with a key that is kept elsewhere."""
