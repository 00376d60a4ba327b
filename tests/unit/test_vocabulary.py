"""One name, one type: readers never have to ask which is meant. docs/reference/glossary.md defines the words."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import placement
from tests.messages import messages

ROOT = Path(placement.__file__).parent
TYPE_NAME = re.compile(r"_*([A-Z][a-z0-9]\w*)")


def type_names(module: ast.Module) -> Iterator[str]:
    """Yield the names of a module's classes and type aliases."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp() | ast.Name()):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name


@cache
def definitions() -> dict[str, list[str]]:
    """Return for each type name the modules that define it, ignoring leading underscores."""
    found = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for name in type_names(ast.parse(path.read_text())):
            if match := TYPE_NAME.fullmatch(name):
                found[match[1]].append(str(path.relative_to(ROOT)))
    return found


def test_no_type_name_has_two_definitions() -> None:
    double = {name: modules for name, modules in definitions().items() if len(modules) > 1}
    assert double == {}


def test_no_message_begins_with_a_pronoun() -> None:
    """Whoever reads a message has not read the code before it. ``python -m tests.messages`` lists them all."""
    found = [message for message in messages() if message.kind != "help"]
    assert len(found) > 100
    assert [
        each
        for each in found
        if re.match(r"(It|They|One|(This|That|These|Those) (is|are|has|have|needs?))\b", each.text)
    ] == []
