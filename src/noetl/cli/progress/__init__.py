"""What is shown while executions run."""
