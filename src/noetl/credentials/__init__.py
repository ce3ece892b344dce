"""Credentials: where their values come from, and how they are kept out of what is written."""
