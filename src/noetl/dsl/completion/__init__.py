"""What may stand at a place of a document that is being written."""
