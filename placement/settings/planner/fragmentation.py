"""The part ``fragmentation`` of a profile: which devices to judge, and by which work."""

from typing import Any

from placement.allocators.entries import InvalidEntry
from placement.allocators.fragmentation import DeviceTask, ExpectedWork, FragmentationSettings
from placement.settings.planner.document import DocumentEntry

CLASS = "[A-Z0-9_]+"
TRAITS = r"[A-Z0-9_]+\*?"


def read_fragmentation(entry: DocumentEntry) -> FragmentationSettings:
    """Return how to judge devices.

    Raises:
        ConfigurationError: an entry is invalid; the message names its line.
    """
    keys = ("weight", "devices", "size", "kinds", "beside", "flavors", "refresh_s")
    parts = entry.fields(*keys, required=["devices"])
    given: dict[str, Any] = {"devices": parts["devices"].text(CLASS, "a resource class")}
    if "size" in parts:
        given["size"] = parts["size"].whole_number(least=1)
    if "kinds" in parts:
        given["kinds"] = _texts(parts["kinds"], TRAITS, "a trait, or a family such as CUSTOM_GPU_*")
    if "beside" in parts:
        given["beside"] = _texts(parts["beside"], CLASS, "a resource class")
    given |= {key: parts[key].number() for key in ("weight", "refresh_s") if key in parts}
    bare = _checked(entry, given)
    if "flavors" in parts:
        given["flavors"] = {name: _flavor(each, bare) for name, each in parts["flavors"].mapping(at_least=1).items()}
    return _checked(entry, given)


def _checked(entry: DocumentEntry, given: dict[str, Any]) -> FragmentationSettings:
    try:
        return FragmentationSettings(**given)
    except InvalidEntry as wrong:
        raise _at(entry, wrong.path).wrong(wrong.expected) from wrong


def _at(entry: DocumentEntry, path: tuple[str, ...]) -> DocumentEntry:
    """Return the entry at a path, or its nearest existing ancestor."""
    for key in path:
        inner = entry.mapping().get(key)
        if inner is None:
            break
        entry = inner
    return entry


def _flavor(entry: DocumentEntry, settings: FragmentationSettings) -> ExpectedWork:
    parts = entry.fields("weight", "devices", "share", "kinds", "resources", required=["resources"])
    devices = parts["devices"].whole_number() if "devices" in parts else 0
    share = parts["share"].whole_number(least=1) if "share" in parts else settings.size if devices else 0
    kinds = _texts(parts["kinds"], CLASS, "a trait") if "kinds" in parts else ()
    amounts = {name: each.whole_number() for name, each in parts["resources"].mapping().items()}
    if share and not devices:
        raise parts["share"].misnamed("the key devices beside it")
    task = DeviceTask(amounts, devices, share, frozenset(kinds))
    return ExpectedWork(task, **({"weight": parts["weight"].number()} if "weight" in parts else {}))


def _texts(entry: DocumentEntry, pattern: str, expected: str) -> tuple[str, ...]:
    return tuple([item.text(pattern, expected) for item in entry.items()])
