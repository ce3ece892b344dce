"""One evaluation: the names it sees, the work it may do, and how values answer for their parts."""

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, LoopContext
from jinja2.utils import Namespace, missing

from noetl.expr.runtime.limits import Budget
from noetl.expr.runtime.marker import ABSENT, Selected, referenced_part, refuse_marker
from noetl.expr.runtime.missing_value import Missing
from noetl.expr.runtime.scope import Scope
from noetl.model.reference import MARKER, is_reference
from noetl.model.result_alias import other_name

_LOOP_FIELDS = frozenset(
    {
        "depth",
        "depth0",
        "first",
        "index",
        "index0",
        "last",
        "length",
        "nextitem",
        "previtem",
        "revindex",
        "revindex0",
    }
)


class Evaluation(Context):
    """Jinja's context over a scope: names are looked up when asked for, nothing is merged.

    Generated code and filters get this object; the shared, never changed parts of Jinja's context
    are class attributes so that an evaluation costs little to begin.
    """

    parent: dict[str, Any] = {}  # noqa: RUF012 - read only, as in Jinja
    blocks: dict[str, Any] = {}  # noqa: RUF012 - read only, as in Jinja
    globals_keys: set[str] = set()  # noqa: RUF012 - read only, as in Jinja
    name = None
    date_format = ""
    """The last format that a date was read with."""
    macro_depth = 0
    """Calls of macros that have not ended."""

    def __init__(
        self, environment: Environment, eval_ctx: EvalContext, scope: Mapping[str, object] | Scope
    ) -> None:
        # Jinja's own constructor makes an EvalContext and copies the blocks, each time.
        self.environment = environment
        self.eval_ctx = eval_ctx
        self.scope = scope
        self.budget = Budget()
        self.vars: dict[str, Any] = {}
        self.exported_vars: set[str] = set()

    def resolve_or_missing(self, key: str) -> Any:
        """The value of a name, or Jinja's mark for none."""
        if key in self.vars:
            return self.vars[key]
        scope = self.scope
        if isinstance(scope, Scope):
            value = scope.resolve(key)
            return missing if value is ABSENT else value
        return scope.get(key, missing)

    def item(self, owner: object, key: object) -> object:
        """`owner[key]`, or an undefined."""
        return item(self.environment, owner, key)

    def data_of(self, name: str) -> object:
        """`NAME.data` of a name from the scope."""
        scope = self.scope
        if isinstance(scope, Scope):
            value = scope.resolve_data(name)
            if value is not ABSENT:
                return value
        owner = self.resolve_or_missing(name)
        return self.resolve(name) if owner is missing else self.item(owner, "data")

    def undefined(self, owner: object, key: object) -> Missing:
        """What stands for a part that `owner` does not have."""
        return _undefined(self.environment, owner, key)


def item(environment: Environment, owner: object, key: object) -> object:
    """The value of a key, an item of a list, a field of `loop`; never an attribute. Or an undefined."""
    # Plain mappings first: they are nearly all there is, and `isinstance` of an ABC is slow.
    if type(owner) is dict:
        if MARKER in owner:
            if is_reference(owner):
                part = referenced_part(owner, key)
                return _undefined(environment, owner, key) if part is ABSENT else part
            refuse_marker(owner)
        try:
            return owner[key]
        except (KeyError, TypeError):
            alias = other_name(owner, key)
            return _undefined(environment, owner, key) if alias is None else owner[alias]
    if isinstance(owner, Missing):
        return owner
    if key == "extracted" and isinstance(owner, Selected):
        return owner.extracted
    if isinstance(owner, Mapping):
        return owner[key] if key in owner else _undefined(environment, owner, key)
    if isinstance(owner, Sequence):
        if type(key) is int and -len(owner) <= key < len(owner):
            return owner[key]
    elif type(owner) is LoopContext and key in _LOOP_FIELDS:
        return getattr(owner, str(key))
    elif type(owner) is Namespace:
        # Read as an attribute, it would answer for its class, too.
        return item(environment, object.__getattribute__(owner, "_Namespace__attrs"), key)
    return _undefined(environment, owner, key)


def _undefined(environment: Environment, owner: object, key: object) -> Missing:
    missing_value = environment.undefined(obj=owner, name=key)  # type: ignore[arg-type]  # Jinja's names are text
    assert isinstance(missing_value, Missing)  # noqa: S101 - every environment here is made with one
    return missing_value
