"""The verbs of `noetl executions`: each module has its click command as `command`."""
