"""Users' Python as code objects. A `return` outside a function ends the code with a value."""

import ast
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

_BODY = "<module>"
"""The function that code with such a `return` becomes; no user can spell it, and tracebacks show it."""


class CompiledCode(NamedTuple):
    """Compiled code. `assigned` are the names that its own level may assign."""

    body: CodeType
    returns: bool
    assigned: frozenset[str]

    def run(self, names: dict[str, Any]) -> tuple[Any] | None:
        """Runs it in a module's globals; a tuple with the value if it came to a `return`."""
        exec(self.body, names)  # noqa: S102 - this is what the tool is for
        if not self.returns:
            return None
        returned: tuple[Any] | None = names.pop(_BODY)()
        return returned


def parse_code(source: str) -> ast.Module | None:
    """The syntax tree, or None if there is none. What Python warns of, it says when the code is compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def compile_code(source: str, name: str) -> CompiledCode:
    """The code object; what `compile` raises if it cannot be one. `name` stands in tracebacks."""
    tree = ast.parse(source, name)
    returns = any(isinstance(node, ast.Return) for node in _own_level(tree))
    assigned = frozenset(_assigned_names(tree))
    if not returns:
        return CompiledCode(compile(tree, name, "exec", dont_inherit=True), returns, assigned)
    # The code must hold at the level of a module: there `yield` or `await` is wrong, in a function not.
    bare = ast.fix_missing_locations(_BareReturns().visit(ast.parse(source, name)))
    compile(bare, name, "exec", dont_inherit=True)
    return CompiledCode(
        compile(_as_function(tree, assigned), name, "exec", dont_inherit=True), returns, assigned
    )


def _own_level(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of the code's own level: not those inside functions and classes."""
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _assigned_names(tree: ast.AST) -> Iterator[str]:
    for node in _own_level(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.alias() if node.name != "*":
                yield node.asname or node.name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


def _as_function(tree: ast.Module, assigned: frozenset[str]) -> ast.Module:
    """The code as the body of a function whose names are all global, so that `return` means itself.

    Raising an exception instead would let `with` and `except` around the `return` see a failure.
    """
    futures = [node for node in tree.body if _is_future(node)]
    wrapped = ast.parse("def body(): pass")
    for function in wrapped.body:
        if isinstance(function, ast.FunctionDef):
            function.name = _BODY
            function.body = [ast.Global(sorted(assigned))] if assigned else []
            function.body += [_FunctionBody().visit(node) for node in tree.body if not _is_future(node)]
    wrapped.body[:0] = futures
    return ast.fix_missing_locations(wrapped)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class _OwnLevel(ast.NodeTransformer):
    """Changes nodes of the code's own level alone."""

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, _SCOPES) else super().visit(node)


class _BareReturns(_OwnLevel):
    """Turns every such `return` into its value, which compiles anywhere."""

    def visit_Return(self, node: ast.Return) -> ast.stmt:  # named by `ast`
        return ast.copy_location(ast.Expr(node.value or ast.Constant(None)), node)


class _FunctionBody(_OwnLevel):
    """Makes the code of a module that of a function."""

    def visit_Return(self, node: ast.Return) -> ast.stmt:  # named by `ast`
        # A tuple tells the value None from the end of the code.
        value = ast.Tuple([node.value or ast.Constant(None)], ast.Load())
        return ast.copy_location(ast.Return(value), node)

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        # A global name cannot be annotated.
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.names[0].name != "*":
            return node
        # Only a module may import every name.
        text = f"from {'.' * node.level}{node.module or ''} import *"
        statement = ast.parse(f"exec({text!r}, globals())").body[0]
        for part in ast.walk(statement):
            ast.copy_location(part, node)
        return statement
