"""What is printed about executions: how they ended, why, their events, and how to go on."""
