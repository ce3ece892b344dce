"""What worker and child say to each other: a length, then that many bytes of MessagePack."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

LENGTH: Final = struct.Struct("<Q")
READY: Final = LENGTH.pack(0)
"""The first frame of a child, empty: it has started."""

SPENT_BODY: Final = b"spent"
SPENT: Final = LENGTH.pack(len(SPENT_BODY)) + SPENT_BODY
"""What a child may say after an answer: it is not fit for another task, and has begun none."""

_INTEGER = 1
"""The code of the extension for integers over 64 bits, which MessagePack lacks."""
FILE: Final = 2
"""The code of the extension for what a file holds: its number among the files of the message."""

TableForm: TypeAlias = Literal["rows", "arrow", "pandas"]
"""What code gets of a stored table."""

Message = TypeVar("Message", bound=Struct)


class LibImport(Struct, frozen=True):
    """`import module as name`, or `from module import thing as name`."""

    name: str
    module: str
    thing: str | None = None


class InputFile(Struct, frozen=True, kw_only=True):
    """A file with an input, and what the code gets of it: a table in one of three forms, or its path."""

    path: str
    form: TableForm | Literal["path"]
    details: dict[str, Any] = {}


class ResultFile(Struct, frozen=True, kw_only=True):
    """A file with a part of a result."""

    media_type: str
    preview: str = ""
    details: dict[str, Any] = {}


class CodeRequest(Struct, frozen=True, kw_only=True):
    """One piece of code to run. `script` is its absolute path if it came from a file.

    Large parts of `args` are in `files`. Those of the result go into files whose names begin with
    `file_prefix`; a table of at most `max_inline` bytes of JSON goes as rows.
    """

    code: str
    name: str
    args: dict[str, Any]
    folder: str
    script: str | None = None
    libs: list[LibImport] = []
    env: dict[str, str] = {}
    side_effect_free: bool = False
    """The code touches nothing but its own values, so there is nothing to set up or put back."""
    files: list[InputFile] = []
    file_prefix: str
    max_inline: int
    max_result: int


class CodeFailure(Struct, frozen=True, kw_only=True):
    """Why there is no result. `exception_type` is empty if it was no exception of the code."""

    kind: Literal["python", "limit", "not_found"]
    message: str
    exception_type: str = ""
    text: str = ""
    """The exception's own message."""
    traceback: str = ""


class CodeAnswer(Struct, frozen=True, kw_only=True):
    """The end of a task. `spent` says that the process is not fit for another; `SPENT` may say so later.

    `result_files` are those that the result names.
    """

    result: Any = None
    result_files: list[ResultFile] = []
    failure: CodeFailure | None = None
    spent: bool = False


class FrameReader:
    """Cuts bytes that come in parts into the bodies of frames."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[bytearray]:
        """Takes the next part; gives the bodies that are whole by now."""
        self._parts += data
        while (end := LENGTH.size + self.size) <= len(self._parts):
            body = self._parts[LENGTH.size : end]
            del self._parts[:end]
            yield body

    @property
    def size(self) -> int:
        """Bytes in the body of the frame that is under way; 0 if that is not known yet."""
        if len(self._parts) < LENGTH.size:
            return 0
        length: int = LENGTH.unpack_from(self._parts)[0]
        return length


def pack(message: Struct) -> bytes:
    """The message as one frame."""
    try:
        body = msgspec.msgpack.encode(message)
    except OverflowError:
        # Few values hold such a number, so none is looked for before. Boxing what needs none changes no byte.
        names = message.__struct_fields__
        wide = type(message)(**{name: _box_integers(getattr(message, name)) for name in names})
        body = msgspec.msgpack.encode(wide)
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes | bytearray, kind: type[Message]) -> Message:
    """The message of a frame without its length."""
    return msgspec.msgpack.decode(body, type=kind, ext_hook=_unbox)


def _box_integers(value: Any) -> Any:
    match value:
        case int() if not -(2**63) <= value < 2**64:
            size = value.bit_length() // 8 + 1
            return msgspec.msgpack.Ext(_INTEGER, value.to_bytes(size, "big", signed=True))
        case dict():
            return {key: _box_integers(item) for key, item in value.items()}
        case list():
            return [_box_integers(item) for item in value]
    return value


def _unbox(code: int, data: memoryview) -> Any:
    if code == _INTEGER:
        return int.from_bytes(data, "big", signed=True)
    if code == FILE:
        return msgspec.msgpack.Ext(FILE, bytes(data))
    raise ValueError(f"unknown extension {code}")


def file_mark(number: int) -> Any:
    """What stands for a file in a message."""
    return msgspec.msgpack.Ext(FILE, number.to_bytes(4, "big"))


def replace_file_marks(value: Any, files: Sequence[Any]) -> Any:
    """The value with something else in the place of each file that it names."""
    match value:
        case msgspec.msgpack.Ext(code=code, data=data) if code == FILE:
            return files[int.from_bytes(data, "big")]
        case dict():
            return {key: replace_file_marks(item, files) for key, item in value.items()}
        case list():
            return [replace_file_marks(item, files) for item in value]
    return value
