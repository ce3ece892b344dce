"""What happens to executions: the closed union of bodies, their one table, envelope and codec."""
