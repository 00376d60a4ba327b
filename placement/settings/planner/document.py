"""Reading YAML so that every complaint names file, line, key and what was expected.

A document is read as nodes that know their line, and nothing is made of them but what a reader asks for: a mapping, a
list, a text, a number. A ``DocumentEntry`` is such a node with the keys that lead to it. Of YAML's many spellings
only those are taken that JSON shares: ``010``, ``1:30`` and ``yes`` are no numbers and no booleans here.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import yaml

from placement.allocators.entries import LARGEST_NUMBER
from placement.errors import ConfigurationError

DEEPEST = 64
"""How many keys may lead to an entry. An anchor inside itself nests without end."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NULL = "tag:yaml.org,2002:null"

SCHEDULER_KEYS = frozenset(
    {"actions", "tiers", "plugins", "arguments", "resourceStrategyFitWeight", "enable", "resourceProportion"}
)
"""What stands in configurations of Volcano's scheduler, and nowhere in ours."""

IMPORT_HINT = "What is written for Volcano's scheduler becomes a planner file by: placement planner import FILE."


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """One value of a document.

    Args:
        file: the name of the file.
        path: the keys that lead here.
        node: the value, and where it stands.
        line: where its key stands, counted from 1; for the items of a list, where the item does.
    """

    file: str
    path: tuple[str, ...]
    node: yaml.Node
    line: int

    def wrong(self, expected: str) -> ConfigurationError:
        """Return the error that says where this is, what was expected and what is there."""
        where = f"{self.file}, line {self.line}: " + (f"{'.'.join(self.path)}: " if self.path else "")
        return ConfigurationError(f"{where}expected {expected}, found {self._shown()}.")

    def misnamed(self, expected: str) -> ConfigurationError:
        """Return the error that says that this entry's key is wrong."""
        *above, key = self.path
        where = f"{'.'.join(above)}: " if above else ""
        hint = f" {IMPORT_HINT}" if key in SCHEDULER_KEYS else ""
        return ConfigurationError(
            f"{self.file}, line {self.line}: {where}expected {expected}, found the key {key!r}.{hint}"
        )

    def is_named_like(self, pattern: str) -> bool:
        """Tell whether the key that leads here matches a regular expression as a whole."""
        return re.fullmatch(pattern, self.path[-1]) is not None

    @property
    def is_mapping(self) -> bool:
        """Whether keys stand here."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether items stand here."""
        return isinstance(self.node, yaml.SequenceNode)

    def mapping(self, *, at_least: int = 0) -> "dict[str, DocumentEntry]":
        """Return what stands under the keys, which are data; in the order of the file.

        Raises:
            ConfigurationError: it is no mapping, it is too small, or a key is not a text or stands there twice.
        """
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

    def fields(self, *known: str, required: Collection[str] = ()) -> "dict[str, DocumentEntry]":
        """Return what stands under the keys, of which only these may occur.

        Raises:
            ConfigurationError: it is no such mapping, a key is unknown, or a required one is missing.
        """
        entries = self.mapping()
        for key, entry in entries.items():
            if key not in known:
                raise entry.misnamed(f"one of the keys {', '.join(known)}" if known else "no key")
        for key in required:
            if key not in entries:
                raise self.wrong(f"the key {key}")
        return entries

    def items(self) -> "list[DocumentEntry]":
        """Return the items of a list; their keys are their numbers, from 0."""
        if not isinstance(self.node, yaml.SequenceNode) or len(self.path) >= DEEPEST:
            raise self.wrong("a list")
        return [
            DocumentEntry(self.file, (*self.path, str(index)), node, node.start_mark.line + 1)
            for index, node in enumerate(self.node.value)
        ]

    def text(self, pattern: str = ".+", expected: str = "a text") -> str:
        """Return a text that matches a regular expression as a whole."""
        value = self._scalar()
        if value is None or not re.fullmatch(pattern, value):
            raise self.wrong(expected)
        return value

    def word(self, *words: str) -> str:
        """Return one of a few words."""
        value = self._scalar()
        if value not in words:
            raise self.wrong(" or ".join(words))
        return value

    def number(self, expected: str = "a number from 0 up") -> int | float:
        """Return a number from 0 up; it counts as it is written, so 0.1 is one tenth."""
        value = self._scalar()
        if value is None or not self._is_plain() or not _NUMBER.fullmatch(value) or value.startswith("-"):
            raise self.wrong(expected)
        number = float(value)
        if number == float("inf"):
            raise self.wrong(expected)
        if number > LARGEST_NUMBER:
            raise self.wrong(f"{expected}, to {LARGEST_NUMBER} at most")
        return int(value) if value.isdecimal() else number

    def whole_number(self, *, least: int = 0) -> int:
        """Return a whole number that is not less than ``least``."""
        expected = f"a whole number from {least} up"
        number = self.number(expected)
        if not isinstance(number, int) or number < least:
            raise self.wrong(expected)
        return number

    def _scalar(self) -> str | None:
        """Return the value as it is written, or None where it is a mapping, a list or nothing."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == _NULL:
            return None
        return str(self.node.value)

    def _is_plain(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.style is None

    def _shown(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            value = str(self.node.value)
            return "nothing" if self.node.tag == _NULL else repr(value if len(value) <= 80 else value[:80] + "...")
        kind = "a mapping" if isinstance(self.node, yaml.MappingNode) else "a list"
        return kind if self.node.value else f"an empty {kind.split()[1]}"


def read_document(path: Path) -> DocumentEntry | None:
    """Return the one document of a file, or None where it is empty.

    Raises:
        ConfigurationError: the file cannot be read or is not YAML.
    """
    try:
        node = yaml.compose(path.read_bytes(), Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.reader.ReaderError as error:
        raise ConfigurationError(f"{path} is not a text file: expected YAML in UTF-8.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(f"{path}{_line_of(error)}: expected YAML: {_problem_of(error)}.") from error
    if node is None:
        return None
    return DocumentEntry(str(path), (), node, node.start_mark.line + 1)


def _line_of(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return f", line {mark.line + 1}" if mark else ""


def _problem_of(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it nests too deeply"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return " ".join(str(problem).split())
