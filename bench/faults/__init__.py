"""Kills and stops servers and workers at random moments, and asks what became of the executions."""
