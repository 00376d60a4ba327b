"""Reading PlannerSettings from the planner file: the table of its sections, and how the file is found.

To add a section: give ``PlannerSettings`` (values.py) a field of the section's name, with the default for files that
omit it; write a module with ``read_<section>(entry, known)`` that returns the field's value, using the methods of
``DocumentEntry`` (they raise errors that name file, line and key; ``entry.wrong("...")`` creates your own); add it to
``SECTIONS``; and show it in ``etc/placement/planner.yaml``. Sections are read in the table's order, whatever their
order in the file, and ``known`` holds those already read: a section may refer to levels and profiles.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.settings.planner.aggregates import read_aggregates
from placement.settings.planner.devices import read_devices, read_exclusive, read_levels
from placement.settings.planner.document import DocumentEntry, read_document
from placement.settings.planner.fair_share import read_fair_share
from placement.settings.planner.flavors import (
    read_flavor_root_required,
    read_flavors,
    read_private_flavors,
)
from placement.settings.planner.profiles import read_default_profile, read_profiles
from placement.settings.planner.values import PlannerSettings

if TYPE_CHECKING:
    from oslo_config.cfg import ConfigOpts

PLANNER_FILE = "planner.yaml"

SECTIONS: Mapping[str, Callable[[DocumentEntry, PlannerSettings], Any]] = {
    "levels": read_levels,
    "devices": read_devices,
    "profiles": read_profiles,
    "default_profile": read_default_profile,
    "fair_share": read_fair_share,
    "exclusive": read_exclusive,
    "flavor_root_required": read_flavor_root_required,
    "flavors": read_flavors,
    "private_flavors": read_private_flavors,
    "aggregates": read_aggregates,
}


def load_planner(path: Path | None) -> PlannerSettings:
    """Return the planner file's settings, with defaults for omitted sections, or for all without a file.

    Raises:
        ConfigurationError: one sentence that names file, line, key and what was expected.
    """
    document = read_document(path) if path else None
    return _planner(document) if document else PlannerSettings()


def planner_file(source: "ConfigOpts") -> Path | None:
    """Return the path of the planner file, or None if there is none.

    It is searched for in the directories given with ``--config-dir`` and next to the configuration files, the last one
    first. If no configuration file was read, only ``[ranking] planner_file`` can name it.
    """
    name = source.ranking.planner_file
    places = [*(Path(file).parent for file in source.config_file), *map(Path, source.config_dir)]
    for place in reversed(places):
        # A dangling link counts as present: failing to read it is better than silently using defaults.
        if os.path.lexists(place / (name or PLANNER_FILE)):
            return place / (name or PLANNER_FILE)
    return Path(name) if name else None


def _planner(document: DocumentEntry) -> PlannerSettings:
    entries = document.fields(*SECTIONS)
    planner = PlannerSettings()
    for name, read in SECTIONS.items():
        if name in entries:
            planner = replace(planner, **{name: read(entries[name], planner)})
    if planner.default_profile not in planner.profiles:
        raise entries["profiles"].wrong("a profile named default, or the key default_profile beside it")
    return planner
