"""What a name or key that is not there answers: two kinds, chosen by where the expression stands."""

from typing import Never

from jinja2 import Undefined, UndefinedError


class MissingError(UndefinedError):
    """An undefined was used where a value is needed."""

    def __init__(self, missing: "Missing") -> None:
        super().__init__("undefined")
        self.missing = missing


class Missing(Undefined):
    """Not there. False when asked for truth; any key of it is not there either; no arithmetic."""

    __slots__ = ()

    @property
    def owner(self) -> object:
        """The value that lacks the key; None where a name is missing."""
        return self._undefined_obj

    @property
    def key(self) -> object:
        """The name or key that is not there."""
        return self._undefined_name

    @property
    def reason(self) -> str:
        """Why there is nothing, where no key is missing: a loop's item before the first."""
        return self._undefined_hint or "the value is undefined"

    def fail(self, *_: object) -> Never:
        """Refuse to be used as a value."""
        raise MissingError(self)

    def answer_comparison(self, operator: str) -> bool:
        """The answer to a comparison with this on either side."""
        raise TypeError(f"{type(self).__name__} does not answer `{operator}`")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = fail
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = fail
    __pow__ = __rpow__ = __pos__ = __neg__ = __call__ = fail
    __int__ = __float__ = __complex__ = __index__ = __abs__ = __round__ = fail
    _fail_with_undefined_error = fail

    def __getitem__(self, _: object) -> "Missing":  # type: ignore[override]  # Jinja raises here
        return self

    def __bool__(self) -> bool:
        return False


class GuardMissing(Missing):
    """In a guard: comparisons are false (`!=` and `not in` true), length 0, iteration empty."""

    __slots__ = ()

    def answer_comparison(self, operator: str) -> bool:
        """False, but true for `!=` and `not in`."""
        return operator in ("ne", "notin")

    def __eq__(self, _: object) -> bool:
        return False

    def __ne__(self, _: object) -> bool:
        return True

    def __lt__(self, _: object) -> bool:  # type: ignore[override]  # Jinja raises here
        return False

    __le__ = __gt__ = __ge__ = __contains__ = __lt__  # type: ignore[assignment]  # Jinja raises here
    __hash__ = Undefined.__hash__


class ValueMissing(Missing):
    """Anywhere else: output, comparison, length and iteration raise."""

    __slots__ = ()

    def answer_comparison(self, operator: str) -> Never:  # noqa: ARG002 - whatever is asked
        """Refused."""
        self.fail()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = Missing.fail
    __str__ = __len__ = __iter__ = __hash__ = Missing.fail
