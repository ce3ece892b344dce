from noetl.dsl.reader.playbook_reader import ReadPlaybook, read_playbook
from noetl.dsl.reader.reader_context import ExpressionOccurrence, ExpressionRole, PlaybookPart, ReaderContext

__all__ = [
    "ExpressionOccurrence",
    "ExpressionRole",
    "PlaybookPart",
    "ReadPlaybook",
    "ReaderContext",
    "read_playbook",
]
