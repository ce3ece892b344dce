from noetl.dsl.reader.context import Context, Role, Site, Where
from noetl.dsl.reader.root import Read, read_playbook

__all__ = ["Context", "Read", "Role", "Site", "Where", "read_playbook"]
