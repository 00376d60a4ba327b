"""Reading YAML so that every error names file, line, key and what was expected.

A document is a tree of entries that know their line and keys. Of YAML's many notations, only those shared with JSON
count: ``010``, ``1:30`` and ``yes`` are neither numbers nor booleans here.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml

from placement.allocators import MAX_NUMBER
from placement.errors import ConfigurationError
from placement.formats.volcano import HIERARCHY

DEEPEST = 64
"""The maximum depth of an entry. A self-referential anchor would nest without end."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NULL = "tag:yaml.org,2002:null"

SCHEDULER_KEYS = frozenset(
    {"actions", "tiers", "plugins", "arguments", "resourceStrategyFitWeight", "enable", "resourceProportion"}
)
"""Keys of Volcano's scheduler configuration that never occur in ours."""

A_QUEUE = "A queue is written - {hierarchy: root/eng/prod, weights: 1/2/8, projects: []}."

Value = TypeVar("Value")

Reader = Callable[["DocumentEntry"], Any]

IMPORT_HINT = "What is written for Volcano's scheduler becomes a planner file by: placement planner import FILE."


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """One value in a document; its readers raise a ConfigurationError if it is not what they expect.

    Args:
        path: the keys that lead to the value.
        node: the value with its position.
        line: the line of its key, or of a list item itself, counted from 1.
    """

    file: str
    path: tuple[str, ...]
    node: yaml.Node
    line: int

    def wrong(self, expected: str) -> ConfigurationError:
        """Return an error that names this place, what was expected, and what was found."""
        where = f"{self.file}, line {self.line}: " + (f"{'.'.join(self.path)}: " if self.path else "")
        return ConfigurationError(f"{where}expected {expected}, found {self._shown()}.")

    def misnamed(self, expected: str) -> ConfigurationError:
        """Return an error that rejects this entry's key."""
        *above, key = self.path
        where = f"{'.'.join(above)}: " if above else ""
        hint = f" {IMPORT_HINT}" if key in SCHEDULER_KEYS else f" {A_QUEUE}" if key.startswith(HIERARCHY) else ""
        return ConfigurationError(
            f"{self.file}, line {self.line}: {where}expected {expected}, found the key {key!r}.{hint}"
        )

    def check_name(self, pattern: str, expected: str) -> None:
        """Refuse an entry whose key does not fully match a regular expression."""
        if re.fullmatch(pattern, self.path[-1]) is None:
            raise self.misnamed(expected)

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    def mapping(self, *, at_least: int = 0) -> "dict[str, DocumentEntry]":
        """Return the entries of a mapping whose keys are data, in the file's order; each is a text, once."""
        expected = "a mapping with at least one key" if at_least else "a mapping"
        if not isinstance(self.node, yaml.MappingNode) or len(self.node.value) < at_least or len(self.path) >= DEEPEST:
            raise self.wrong(expected)
        entries: dict[str, DocumentEntry] = {}
        for key, node in self.node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or not key.value:
                raise DocumentEntry(self.file, self.path, key, line).wrong("a text as the key")
            entry = DocumentEntry(self.file, (*self.path, key.value), node, line)
            if key.value in entries:
                raise entry.misnamed(f"each key once ({key.value} also stands in line {entries[key.value].line})")
            entries[key.value] = entry
        return entries

    def fields(self, *allowed: str, required: Collection[str] = ()) -> "dict[str, DocumentEntry]":
        """Return the entries of a mapping whose keys are fixed."""
        entries = self.mapping()
        for key, entry in entries.items():
            if key not in allowed:
                raise entry.misnamed(f"one of the keys {', '.join(allowed)}" if allowed else "no key")
        for key in required:
            if key not in entries:
                raise self.wrong(f"the key {key}")
        return entries

    def read_keys(self, readers: "Mapping[str, Reader]", *, required: Collection[str] = ()) -> dict[str, Any]:
        """Return what readers make of the keys of a mapping that are there, in the order of the readers."""
        entries = self.fields(*readers, required=required)
        return {key: read(entries[key]) for key, read in readers.items() if key in entries}

    def read_values(self, reader: "Callable[[DocumentEntry], Value]") -> "Mapping[str, Value]":
        """Return what a reader makes of each entry of a mapping whose keys are data."""
        return MappingProxyType({key: reader(entry) for key, entry in self.mapping().items()})

    def read_distinct_values(self, reader: "Callable[[DocumentEntry], str]", expected: str) -> Mapping[str, str]:
        """Return the same where no value may occur twice."""
        values: dict[str, str] = {}
        for key, entry in self.mapping().items():
            value = reader(entry)
            if value in values.values():
                raise entry.wrong(expected)
            values[key] = value
        return MappingProxyType(values)

    def items(self) -> "list[DocumentEntry]":
        """Return the items of a list; their keys are their indexes, from 0."""
        if not isinstance(self.node, yaml.SequenceNode) or len(self.path) >= DEEPEST:
            raise self.wrong("a list")
        return [
            DocumentEntry(self.file, (*self.path, str(index)), node, node.start_mark.line + 1)
            for index, node in enumerate(self.node.value)
        ]

    def texts(self, pattern: str = ".+", expected: str = "a text") -> tuple[str, ...]:
        """Return a list of texts that fully match a regular expression."""
        return tuple([item.text(pattern, expected) for item in self.items()])

    def text(self, pattern: str = ".+", expected: str = "a text") -> str:
        """Return a text that fully matches a regular expression."""
        value = self._scalar()
        if value is None or not re.fullmatch(pattern, value):
            raise self.wrong(expected)
        return value

    def word(self, *words: str) -> str:
        """Return one of a fixed set of words."""
        value = self._scalar()
        if value not in words:
            raise self.wrong(" or ".join(words))
        return value

    def number(self, expected: str = "a number from 0 up") -> int | float:
        """Return a number from 0 up, an int if written as one."""
        value, is_quoted = self._scalar(), getattr(self.node, "style", None) is not None
        if value is None or is_quoted or not _NUMBER.fullmatch(value) or value.startswith("-"):
            raise self.wrong(expected)
        number = float(value)
        if number == float("inf"):
            raise self.wrong(expected)
        if number > MAX_NUMBER:
            raise self.wrong(f"{expected}, to {MAX_NUMBER} at most")
        return int(value) if value.isdecimal() else number

    def count(self) -> int:
        """Return a whole number from 1 up."""
        return self.whole_number(least=1)

    def whole_number(self, *, least: int = 0) -> int:
        """Return a whole number that is at least ``least``."""
        expected = f"a whole number from {least} up"
        number = self.number(expected)
        if not isinstance(number, int) or number < least:
            raise self.wrong(expected)
        return number

    def _scalar(self) -> str | None:
        """Return the value as written, or None if it is a mapping, a list or null."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == _NULL:
            return None
        return str(self.node.value)

    def _shown(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            value = str(self.node.value)
            return "nothing" if self.node.tag == _NULL else repr(value if len(value) <= 80 else value[:80] + "...")
        kind = "a mapping" if isinstance(self.node, yaml.MappingNode) else "a list"
        return kind if self.node.value else f"an empty {kind.split()[1]}"


def read_document(path: Path) -> DocumentEntry | None:
    """Return the single document in a file, None if it is empty; ConfigurationError if it is unreadable."""
    try:
        node = yaml.compose(path.read_bytes(), Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.reader.ReaderError as error:
        raise ConfigurationError(f"{path} is not a text file: expected YAML in UTF-8.") from error
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        reason = "it nests too deeply" if isinstance(error, RecursionError) else " ".join(str(problem).split())
        raise ConfigurationError(f"{path}{line}: expected YAML: {reason}.") from error
    if node is None:
        return None
    return DocumentEntry(str(path), (), node, node.start_mark.line + 1)
