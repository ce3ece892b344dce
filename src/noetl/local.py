"""Server and worker in one process."""
