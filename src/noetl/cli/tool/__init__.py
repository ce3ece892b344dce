"""What `noetl tools` says."""
