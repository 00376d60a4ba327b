"""GET /planner/v1/profiles: profiles, levels, locks, device types and aggregates in force, as in the planner file."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from flask import Response

from placement.allocators.fragmentation.hosts import ExpectedWork, FragmentationSettings
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Preference
from placement.api.call import Call
from placement.api.routing import planner_route
from placement.domain.device_types import DeviceSettings, DeviceType
from placement.domain.planner_request import THE_DEVICE


def list_profiles(call: Call) -> Response:
    """Return the names that requests may use, and their meaning. JSON is YAML: ``profiles`` could stand in the file."""
    planner = call.server.settings.planner
    learnt = dict(_learnt(call))
    return call.json(
        {
            "default_profile": planner.default_profile,
            "profiles": {name: _profile(profile) for name, profile in planner.profiles.items()},
            "levels": dict(planner.levels),
            "exclusive": {
                level: lock for level, lock in planner.exclusive.items() if level in (*planner.levels, THE_DEVICE)
            },
            "devices": _devices(planner.devices, planner.levels),
            "aggregates": {
                kind: {name: list(uuids) for name, uuids in names.items()} for kind, names in planner.aggregates.items()
            },
            **({"learnt": learnt} if learnt else {}),
        }
    )


def _learnt(call: Call) -> Iterator[tuple[str, Any]]:
    """Yield what each profile without flavors has learnt, and since when; ``flavors`` could stand in the file."""
    for name, profile in call.server.settings.planner.profiles.items():
        judge = call.server.fragmentation_judges.get(profile.name)
        if judge is not None and not judge.settings.flavors:
            picture = judge.picture(call.database)
            work = [ExpectedWork(task, round(often, 2)) for task, often in picture.expected.items()]
            flavors = {f"learnt-{number}": _flavor(flavor) for number, flavor in enumerate(work, start=1)}
            yield name, {"since": _time(picture.learnt_since), "flavors": flavors}


def _time(since: float | None) -> str | None:
    return None if since is None else datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")


def _profile(profile: RankingProfile) -> dict[str, Any]:
    """Return the active parts of a profile."""
    fit, sra, proportional = profile.strategy.fit, profile.strategy.sra, profile.strategy.proportional
    parts = {
        "fit": fit and _fields(fit, "weight", "resources"),
        "sra": sra and _fields(sra, "weight", "mode", "resources"),
        "proportional": proportional and _fields(proportional, "mode", "exempt", "reserve"),
        "compactness": profile.compactness and {"weight": _plain(profile.compactness)},
        "fragmentation": profile.fragmentation and _fragmentation(profile.fragmentation),
    }
    return {name: part for name, part in parts.items() if part}


def _fields(settings: Any, *names: str) -> dict[str, Any]:
    return {name: _plain(getattr(settings, name)) for name in names}


def _plain(value: Any) -> Any:
    """Return what profiles consist of as JSON."""
    if isinstance(value, Preference):
        return _fields(value, "type", "weight")
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return float(value) if isinstance(value, Fraction) else value


def _devices(devices: DeviceSettings, levels: Collection[str]) -> dict[str, Any]:
    types = {name: _device_type(kind) for name, kind in devices.types.items()}
    scopes = {"same_pcie": devices.same_pcie, "same_numa": devices.same_numa}
    in_force = {scope: level for scope, level in scopes.items() if level in levels}
    return {"types": types, **_fields(devices, "base", "host", "labels"), **in_force}


def _device_type(kind: DeviceType) -> dict[str, Any]:
    optional = {"virtual_function": kind.virtual_function, "shared": kind.shared}
    return {
        "class": kind.resource_class,
        **_fields(kind, "whole", "label_prefix", "resources"),
        **{key: value for key, value in optional.items() if value is not None},
    }


def _fragmentation(settings: FragmentationSettings) -> dict[str, Any]:
    """Return how fragmentation is judged; without flavors, expected work is learnt."""
    shown = _fields(settings, "weight", "devices", "size", "kinds", "beside", "refresh_s")
    if settings.flavors:
        shown["flavors"] = {name: _flavor(flavor) for name, flavor in settings.flavors.items()}
    return shown


def _flavor(flavor: ExpectedWork) -> dict[str, Any]:
    task = flavor.task
    shown: dict[str, Any] = {"weight": _plain(flavor.weight), "resources": dict(task.amounts)}
    if task.devices:
        shown |= {"devices": task.devices, "share": task.share, "kinds": sorted(task.kinds)}
    return shown


ROUTES = (planner_route("GET", "/profiles", list_profiles, rule="profiles:list"),)
