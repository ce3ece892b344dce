"""Plain values and errors that every room knows. Nothing here imports anything else of the package."""
