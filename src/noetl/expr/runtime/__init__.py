"""What one evaluation works with: its scope, its budget, and how values answer."""
