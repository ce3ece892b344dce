"""Executions on the command line: what goes in, what is shown meanwhile, what is said at the end."""
