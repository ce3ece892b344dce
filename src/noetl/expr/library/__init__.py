"""What expressions may call: operators, filters, functions, methods and tests."""
