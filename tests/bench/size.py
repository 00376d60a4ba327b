"""Counts the size of the code: ``python -m tests.bench.size [DIRECTORY]``, of this checkout or of another one.

Lines are those of Python files, blank lines and comments included. The core is what decides: services, candidates,
allocators, the search of the store, the domain, and the cloud in columns.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CORE = ("services", "candidates", "allocators", "store/search", "domain", "cloud")
SMALL = 60
PRONOUNS = ("one", "found", "of", "some", "most", "rest", "told", "known")
BOLD = re.compile(r"\*\*(.+?)\*\*")
"""A term where it is explained."""

Functions = ast.FunctionDef | ast.AsyncFunctionDef


def sizes(root: Path) -> Iterator[tuple[str, object]]:
    """Yield what is counted, and how much of it there is."""
    files = {path: path.read_text() for path in sorted((root / "placement").rglob("*.py"))}
    lines = {path: text.count("\n") for path, text in files.items()}
    yield "lines of placement/", sum(lines.values())
    yield "lines of tests/", sum(path.read_text().count("\n") for path in (root / "tests").rglob("*.py"))
    core = [root / "placement" / part for part in CORE]
    of_core = [path for path in files if any(path.is_relative_to(part) for part in core)]
    yield "lines of the core", sum(lines[path] for path in of_core)
    for part in core:
        yield f"  {part.relative_to(root)}", sum(lines[path] for path in of_core if path.is_relative_to(part))
    yield "files of placement/", len(files)
    yield f"  of at most {SMALL} lines", sum(count <= SMALL for count in lines.values())
    yield "  with a name that another has, too", _namesakes(files)
    longest = max(lines, key=lambda path: lines[path])
    yield "lines of the largest file", f"{lines[longest]} ({longest.relative_to(root)})"
    yield from _of_the_syntax({str(path.relative_to(root)): ast.parse(text) for path, text in files.items()})
    yield "terms of the glossary", len(BOLD.findall((root / "docs" / "reference" / "glossary.md").read_text()))


def _namesakes(files: dict[Path, str]) -> int:
    names = Counter(path.name for path in files if path.name != "__init__.py")
    return sum(count for count in names.values() if count > 1)


def _of_the_syntax(trees: dict[str, ast.Module]) -> Iterator[tuple[str, object]]:
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    yield "classes", sum(isinstance(node, ast.ClassDef) for _path, node in nodes)
    functions = [(_length(node), path, node.name) for path, node in nodes if isinstance(node, Functions)]
    length, path, name = max(functions)
    yield "functions", len(functions)
    yield "  median of their lines", sorted(functions)[len(functions) // 2][0]
    yield "lines of the largest function", f"{length} ({path}: {name})"
    bound = Counter(name for _path, node in nodes if (name := _bound_name(node)) is not None)
    yield "names that are pronouns", ", ".join(f"{name} {bound[name]}" for name in PRONOUNS)


def _length(node: Functions) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _bound_name(node: ast.AST) -> str | None:
    """Return the name that a node gives to a value."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def main() -> None:
    """Print the table."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]
    for what, count in sizes(root):
        print(f"{what:38} {count}")


if __name__ == "__main__":
    main()
