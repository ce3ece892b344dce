"""Plain values and errors that every room knows. Nothing here imports anything else of the package."""

from noetl.model.errors import ExpressionError, NoetlError, ResultError
from noetl.model.json import Json

__all__ = ["ExpressionError", "Json", "NoetlError", "ResultError"]
