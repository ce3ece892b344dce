"""Who asks, as events record it."""

import getpass


def current_user() -> str:
    """The name of the user who asks; empty where the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A user id without a name, as in a container: ImportError where there is no `pwd`.
        return ""
