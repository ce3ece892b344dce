"""The data plane: what runs the tasks."""
