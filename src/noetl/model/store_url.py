"""Which URLs of stores name a database, and how they are shown."""

import re
from typing import Final

DATABASE_SCHEMES: Final = ("postgresql://", "postgres://")
_IN_ADDRESS = re.compile(r"(//[^/@:]*):[^/]*@")
_IN_QUERY = re.compile(r"([?&]password=)[^&]*")


def is_database_url(url: str) -> bool:
    """Whether it names a database that several servers may share. Then no home belongs to it alone."""
    return url.startswith(DATABASE_SCHEMES)


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    return _IN_QUERY.sub(r"\1…", _IN_ADDRESS.sub(r"\1@", url))
