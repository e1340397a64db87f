"""Which source code a test depends on, as a digest: of what it says, not of where it lies.

A definition is a function, a class or another statement at the top of a module. A test depends on
its own definition, on each definition whose name occurs there, on those whose names occur in these,
and so on. The digest is that of the syntax trees of them all. Texts that do nothing (docstrings),
types of parameters and comments are left out, and so are the names and the paths of modules: code
that moves to another module keeps its digest.

A name is looked up as if it were global, so a local one may add too much, and never too little. A
module that is passed on as a whole adds all that is in it. Names in strings are not looked up.
"""

import ast
import copy
import functools
import hashlib
import importlib.util
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Place", "digest", "statements", "used"]

ROOTS = ("bnp_kernels", "bnp_models.testing", "oracles")
"""Packages whose code is followed. Of other packages only the names count."""


class Place(NamedTuple):
    """A definition: the file of its module, and the name; "" stands for the whole module."""

    file: Path
    name: str


class _Module(NamedTuple):
    own: Mapping[str, list[ast.stmt]]  # statements that bind a name
    imported: Mapping[str, set[tuple[str, str]]]  # module and name there, by the name here
    always: list[ast.stmt]  # statements that bind none, such as calls


def used(place: Place) -> set[Place]:
    """Return all definitions that one depends on, with itself."""
    found: set[Place] = set()
    waiting = [place]
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting += [target for _, target in _targets(here)]
    return found


def digest(place: Place, versions: str = "") -> str:
    """Return the digest of a definition and of all that it depends on.

    Raises
    ------
    KeyError
        If the file has no such definition.
    ValueError
        If a module is imported in a way that is not followed.
    """
    parts = []
    for here in used(place):  # with what its names stand for: they may be given to other code
        named = sorted(f"{name} {_own(target)}" for name, target in _targets(here))
        parts.append(_hash([_own(here), *named]))
    return _hash([versions, *sorted(parts)])[:16]


def statements(place: Place) -> list[ast.stmt]:
    """Return the statements of a definition, and those of its module that bind no name."""
    module = _read(place.file)
    own = [module.own[place.name]] if place.name else module.own.values()
    return [*itertools.chain.from_iterable(own), *module.always]


@functools.cache
def _own(place: Place) -> str:
    """Return the digest of the text of a definition alone."""
    if not place.name:
        return "module"
    plain = _Plain(place.file)
    dumped = [ast.dump(plain.visit(copy.deepcopy(x))) for x in statements(place)]
    return _hash([*dumped, *sorted(_from_elsewhere(place))])


def _from_elsewhere(place: Place) -> set[str]:
    """Return what the names in a definition stand for that are imported and not followed."""
    imported = _read(place.file).imported
    nodes = itertools.chain.from_iterable(map(ast.walk, statements(place)))
    return {
        # modules of the library may move
        f"{name} {attribute if source.startswith('bnp_models') else (source, attribute)}"
        for name in {node.id for node in nodes if isinstance(node, ast.Name)}
        for source, attribute in imported.get(name, ())
        if _file(source) is None
    }


@functools.cache
def _targets(place: Place) -> set[tuple[str, Place]]:
    """Return what the names in a definition stand for, as far as the code is followed."""
    if not place.name:
        module = _read(place.file)
        names = module.own.keys() | module.imported.keys()
        return {(name, target) for name in names for target in _resolve(place.file, name)}
    found: set[tuple[str, Place]] = set()
    for statement in statements(place):
        nodes = list(ast.walk(statement))
        of_attributes = {id(x.value) for x in nodes if isinstance(x, ast.Attribute)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found |= _attribute(place.file, node.value.id, node.attr)
            elif isinstance(node, ast.Name):
                for target in _resolve(place.file, node.id):
                    if target.name or id(node) not in of_attributes:
                        found.add((node.id if target.name else "", target))
    return found


def _attribute(file: Path, name: str, attribute: str) -> set[tuple[str, Place]]:
    """Return what an attribute stands for, if the name before the dot is that of a module."""
    modules = [target for target in _resolve(file, name) if not target.name]
    return {
        (f".{attribute}", target)
        for module in modules
        for target in _resolve(module.file, attribute) or [module]
    }


@functools.cache
def _resolve(file: Path, name: str) -> list[Place]:
    """Follow a global name to the definitions or modules that it may stand for."""
    module = _read(file)
    found = [Place(file, name)] if name in module.own else []
    for source, attribute in sorted(module.imported.get(name, ())):
        if attribute and (inside := _file(f"{source}.{attribute}")):
            found.append(Place(inside, ""))
        elif there := _file(source):
            found += _resolve(there, attribute) if attribute else [Place(there, "")]
    return found


@functools.cache
def _file(module: str) -> Path | None:
    """Return the file of a module that is followed."""
    if not any(module == root or module.startswith(f"{root}.") for root in ROOTS):
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # the last name is not that of a module
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


@functools.cache
def _read(file: Path) -> _Module:
    tree = ast.parse(file.read_text())
    imported: dict[str, set[tuple[str, str]]] = {}
    for node in ast.walk(tree):  # those inside of functions, too
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not alias.asname and alias.name.startswith(ROOTS):
                    raise ValueError(f"{file}: write 'from ... import ...' for {alias.name}")
                name = alias.asname or alias.name.partition(".")[0]
                imported.setdefault(name, set()).add((alias.name, ""))
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{file}: write the whole name of the module of {node.names}")
            for alias in node.names:
                whole = node.module or "", alias.name
                imported.setdefault(alias.asname or alias.name, set()).add(whole)
    own: dict[str, list[ast.stmt]] = {}
    always: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        names = set(_bound(statement))
        for name in names - {"__all__"}:
            own.setdefault(name, []).append(statement)
        if not names and not _is_text(statement):
            always.append(statement)
    for statement in tree.body:  # `@f.defjvp` changes f
        for decorator in getattr(statement, "decorator_list", ()):
            for node in ast.walk(decorator):
                if isinstance(node, ast.Name) and statement not in own.get(node.id, [statement]):
                    own[node.id].append(statement)
    return _Module(own, imported, always)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """List the global names that a statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _hash(parts: Iterator[str] | list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class _Plain(ast.NodeTransformer):
    """Leave out texts that do nothing, imports, and the names of modules."""

    def __init__(self, file: Path):
        self._file = file

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if any(not target.name for target in _resolve(self._file, node.id)):
            node.id = "module"
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None  # types of parameters are for people and checkers
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        return None  # what is imported counts where it is used

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_text(node) else self.generic_visit(node)
