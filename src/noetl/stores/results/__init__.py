"""The result stores: large values by key, in files, memory, the database or S3."""
