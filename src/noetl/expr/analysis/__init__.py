"""What is known of an expression without evaluating it."""
