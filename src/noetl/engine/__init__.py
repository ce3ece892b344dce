"""The control plane: what is decided, written and remembered about executions."""
