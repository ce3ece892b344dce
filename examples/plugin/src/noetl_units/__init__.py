"""The tool kind `convert`."""
