from noetl.dsl.reader.playbook_reader import Read, read_playbook
from noetl.dsl.reader.reader_context import Context, Role, Site, Where

__all__ = ["Context", "Read", "Role", "Site", "Where", "read_playbook"]
