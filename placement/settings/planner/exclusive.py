"""The section ``exclusive``: the lock class of each level.

Consumers that share a place take 1 of its lock; a consumer that wants it exclusively takes all.
"""

from collections.abc import Mapping
from types import MappingProxyType

from placement.domain.planner_request import THE_DEVICE
from placement.settings.planner.devices import CLASS
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.values import PlannerSettings


def read_exclusive(entry: DocumentEntry, known: PlannerSettings) -> Mapping[str, str]:
    """Return level name -> lock class.

    Raises:
        ConfigurationError: a level is unknown, or a class is malformed or locks two levels.
    """
    locks: dict[str, str] = {}
    for level, lock in entry.mapping().items():
        if level not in known.levels and level != THE_DEVICE:
            raise lock.misnamed(f"a level: {', '.join([*known.levels, THE_DEVICE])}")
        locks[level] = lock.text(CLASS, "a resource class such as CUSTOM_PCIE_LOCK")
        if list(locks.values()).count(locks[level]) > 1:
            raise lock.wrong("a resource class that no other level has")
    return MappingProxyType(locks)
