from noetl.model.errors import NoetlError


class GraphError(NoetlError):
    """A picture cannot be drawn here: the format is unknown or a library is missing."""
