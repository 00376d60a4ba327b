"""The section ``fair_share``: which classes count, the tree of queues with its weights, and the queues' members."""

import re
from collections.abc import Mapping
from typing import NamedTuple, cast

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.queues import Contradiction, Queue, QueueCapacity, QueueTree, tree_of
from placement.allocators.fair_share.tree import GREATEST_WEIGHT, LEAST_WEIGHT, SEPARATOR
from placement.errors import ConfigurationError
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.values import FairShareSettings, Leaves, PlannerSettings

MEMBERS: Mapping[Leaves, str] = {"project": "projects", "consumer_type": "consumer_types"}
"""The key under which a queue lists its members."""

_CLASS = "[A-Z0-9_]{1,255}"
_PATH = "[^/]+(/[^/]+)+"
_UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PROMISES = ("guarantee", "deserved", "limit")
_A_PATH = "a path such as root/eng/dev"
_A_WEIGHT = "a number from 0.000001 to 1000000"


def read_fair_share(entry: DocumentEntry, _planner: PlannerSettings) -> FairShareSettings:
    """Return the fair-share settings.

    Raises:
        ConfigurationError: an entry is invalid, or two contradict each other; the message names their lines.
    """
    parts = entry.fields("classes", "leaves", "tree", "queues", "default", "partition", "keep_s")
    default = FairShareSettings()
    leaves = cast("Leaves", parts["leaves"].word(*MEMBERS)) if "leaves" in parts else default.leaves
    classes = _classes(parts["classes"]) if "classes" in parts else default.classes
    return FairShareSettings(
        classes=classes,
        leaves=leaves,
        queues=_queues(entry, parts, _Words(MEMBERS[leaves], classes)),
        partition=parts["partition"].text(_UUID, "the uuid of an aggregate").lower() if "partition" in parts else None,
        keep_s=parts["keep_s"].number() if "keep_s" in parts else default.keep_s,
    )


class _Words(NamedTuple):
    """The terms that queues may use: the key under which they list their members, and the classes that count."""

    members: str
    classes: tuple[str, ...]


def _classes(entry: DocumentEntry) -> tuple[str, ...]:
    names: list[str] = []
    for item in entry.items():
        names.append(item.text(_CLASS, "a resource class such as VCPU"))
        if names.count(names[-1]) > 1:
            raise item.wrong("each class once")
    if not names:
        raise entry.wrong("a list of at least one resource class")
    return tuple(names)


def _queues(entry: DocumentEntry, parts: Mapping[str, DocumentEntry], words: _Words) -> QueueTree:
    """Return the tree from lines of both forms, which may be mixed."""
    lines = [
        *([(line, _of_tree(line, words)) for line in parts["tree"].mapping().values()] if "tree" in parts else ()),
        *([(line, _of_volcano(line, words)) for line in parts["queues"].items()] if "queues" in parts else ()),
    ]
    default = parts["default"].text(_PATH, _A_PATH) if "default" in parts else None
    try:
        return tree_of([queue for _entry, queue in lines], default)
    except Contradiction as contradiction:
        # A default queue that no line mentions comes last.
        written = [*[line for line, _queue in lines], parts.get("default", entry)]
        both = [written[contradiction.first], written[contradiction.second]]
        first, second = sorted(both, key=lambda line: line.line)
        where = f"{second.file}, lines {first.line} and {second.line}"
        raise ConfigurationError(f"{where}: {second.path[0]}: {contradiction}.") from contradiction


def _of_tree(entry: DocumentEntry, words: _Words) -> Queue:
    """Return a line of the form ``root/eng/dev: {weight: 2, projects: [...]}``."""
    entry.check_name(_PATH, _A_PATH)
    parts, path = entry.fields("weight", words.members, *_PROMISES), entry.path[-1]
    weights: list[Number | None] = [None] * len(path.split(SEPARATOR))
    if "weight" in parts:
        weights[-1] = parts["weight"].number(_A_WEIGHT)
        _check_weight(parts["weight"], weights[-1])
    members = parts[words.members].texts(expected="an id or a name") if words.members in parts else None
    return Queue(path, tuple(weights), members, _capacity(parts, words))


def _of_volcano(entry: DocumentEntry, words: _Words) -> Queue:
    """Return a line of the form ``{hierarchy: root/eng/prod, weights: 1/2/8, projects: [...]}``."""
    parts = entry.fields("hierarchy", "weights", words.members, *_PROMISES, required=["hierarchy", "weights"])
    path = parts["hierarchy"].text(_PATH, _A_PATH)
    count = len(path.split(SEPARATOR))
    expected = f"{count} weights, one for each name of {path}, such as {'/'.join(['1'] * count)}"
    texts = parts["weights"].text(expected=expected).split(SEPARATOR)
    if len(texts) != count or not all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) for text in texts):
        raise parts["weights"].wrong(expected)
    weights = tuple(float(text) if "." in text else int(text) for text in texts)
    for weight in weights:
        _check_weight(parts["weights"], weight)
    members = parts[words.members].texts(expected="an id or a name") if words.members in parts else ()
    return Queue(path, weights, members, _capacity(parts, words))


def _capacity(parts: Mapping[str, DocumentEntry], words: _Words) -> QueueCapacity:
    """Return the promises of a queue; each must be at least as large as the one before it."""
    capacity: dict[str, dict[str, int]] = {}
    for promise in _PROMISES:
        capacity[promise] = {}
        for name, item in parts[promise].mapping().items() if promise in parts else ():
            if name not in words.classes:
                raise item.misnamed(f"a class that counts: {', '.join(words.classes)}")
            capacity[promise][name] = item.whole_number()
            least = max(amounts.get(name, 0) for amounts in capacity.values())
            if capacity[promise][name] < least:
                raise item.wrong(f"a number from {least} up, as guarantee, deserved and limit follow each other")
    return QueueCapacity(**capacity)


def _check_weight(entry: DocumentEntry, weight: Number | None) -> None:
    if weight is not None and not LEAST_WEIGHT <= exact(weight) <= GREATEST_WEIGHT:
        raise entry.wrong(_A_WEIGHT)
