"""A plain trace format for clouds of one's own: hosts.csv and a file of tasks, with a column per resource class.

* ``hosts.csv``: ``host`` (its name), ``devices`` (how many it has), ``kind`` (of devices), and a column for each class.
* ``tasks_WORKLOAD.csv``: ``devices``, ``share`` (thousandths of each), ``kinds`` (A|B; empty for any), a column for
  each class, and, where tasks leave, ``comes`` and ``goes``: times in any unit.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import inf
from pathlib import Path

from placement.allocators.fragmentation import DeviceTask, FreeDevice, FreeHost

HOSTS = "hosts.csv"
TASKS = "tasks_{}.csv"

PlainRow = Mapping[str, str]

_OF_HOSTS = ("host", "devices", "kind")
_OF_TASKS = ("task", "devices", "share", "kinds", "comes", "goes")


def is_plain(folder: Path) -> bool:
    """Tell whether a folder contains a trace in this format."""
    return any((folder / name).exists() for name in (HOSTS, f"{HOSTS}.gz"))


def hosts(rows: Iterable[PlainRow], size: int) -> list[FreeHost]:
    """Return the hosts; equal ones are one object.

    Raises:
        KeyError: a column is missing.
        ValueError: an amount is not a whole number.
    """

    @cache
    def made(devices: int, kind: str, amounts: tuple[tuple[str, int], ...]) -> FreeHost:
        return FreeHost(dict(amounts), (FreeDevice(size, kind),) * devices)

    return [made(int(row["devices"] or 0), row.get("kind") or "", _amounts(row, _OF_HOSTS)) for row in rows]


def tasks(rows: Iterable[PlainRow]) -> tuple[list[DeviceTask], list[tuple[float, float]]]:
    """Return the tasks, equal ones as one object, and when they arrive and leave, if all of them say so.

    Raises:
        KeyError, ValueError: as ``hosts``.
    """

    @cache
    def made(devices: int, share: int, kinds: str, amounts: tuple[tuple[str, int], ...]) -> DeviceTask:
        known = frozenset(kinds.split("|")) - {""} if devices else frozenset[str]()
        return DeviceTask(dict(amounts), devices, share if devices else 0, known)

    rows, found = list(rows), []
    for row in rows:
        amounts = _amounts(row, _OF_TASKS)
        found.append(made(int(row["devices"] or 0), int(row["share"] or 0), row.get("kinds") or "", amounts))
    return found, stays(rows, "comes", "goes")


def stays(rows: Sequence[PlainRow], comes: str, goes: str) -> list[tuple[float, float]]:
    """Return when each task arrives and leaves; nothing unless all of them say so.

    Args:
        rows: the tasks.
        comes: the column that says when they arrive.
        goes: the column that says when they leave.

    Raises:
        ValueError: a time is not a number, or a task leaves before it arrives.
    """
    if not all(row.get(comes) and row.get(goes) for row in rows):
        return []
    times = [(float(row[comes]), float(row[goes])) for row in rows]
    for line, (arrives, leaves) in enumerate(times, start=2):
        if not -inf < arrives <= leaves < inf:
            raise ValueError(f"line {line}: {goes} is {leaves:g}, which is not a time after {comes}, {arrives:g}.")
    return times


def _amounts(row: PlainRow, others: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple([(name, int(amount or 0)) for name, amount in row.items() if name not in others])
