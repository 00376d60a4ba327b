"""The section ``aggregates``: names for aggregates by kind, such as racks, for the console's map and for gangs."""

from collections.abc import Mapping
from types import MappingProxyType

from placement.domain.fabric import THE_HOST
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.values import PlannerSettings

KIND = "[a-z][a-z0-9_-]{0,30}"
NAME = "[^\x00-\x1f\x7f/]{1,100}"
UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def read_aggregates(entry: DocumentEntry, _known: PlannerSettings) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return kind -> name -> the uuids of its aggregates, with kinds and names in the file's order.

    Raises:
        ConfigurationError: a kind, name or uuid is malformed, or a uuid has two names of one kind.
    """
    return MappingProxyType({kind: _names(names) for kind, names in entry.mapping().items()})


def _names(entry: DocumentEntry) -> Mapping[str, tuple[str, ...]]:
    if not entry.is_named_like(KIND):
        raise entry.misnamed("a kind of aggregates in lower case, such as zone or rack")
    if entry.is_named_like(THE_HOST):
        raise entry.misnamed("another kind than host, which each tree is by itself")
    found: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for name, one in entry.mapping(at_least=1).items():
        if not one.is_named_like(NAME):
            raise one.misnamed("a name of up to 100 characters, without a slash")
        found[name] = tuple([_uuid(item, seen) for item in _items(one)])
    return MappingProxyType(found)


def _items(entry: DocumentEntry) -> list[DocumentEntry]:
    if not entry.is_list:
        return [entry]
    items = entry.items()
    if not items:
        raise entry.wrong("the uuid of an aggregate, or a list of them")
    return items


def _uuid(entry: DocumentEntry, seen: set[str]) -> str:
    uuid = entry.text(UUID, "the uuid of an aggregate, or a list of them").lower()
    if uuid in seen:
        raise entry.wrong("an aggregate that has no other name of this kind")
    seen.add(uuid)
    return uuid
