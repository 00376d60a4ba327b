"""GET /planner/v1/profiles: profiles, levels, locks, device types and aggregates in force, as in the planner file."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from flask import Response

from placement.allocators.entries import Number
from placement.allocators.fragmentation import ExpectedWork, FragmentationSettings
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Proportional, Sra
from placement.api.call import Call
from placement.api.routing import PLANNER_PATH, Route
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
        judge = call.server.fragmentation_judges.of(profile)
        if judge is not None and not judge.settings.flavors:
            picture = judge.picture(call.database)
            work = [ExpectedWork(task, round(often, 2)) for task, often in picture.expected.items()]
            flavors = {f"learnt-{number}": _flavor(each) for number, each in enumerate(work, start=1)}
            yield name, {"since": _time(picture.learnt_since), "flavors": flavors}


def _time(since: float | None) -> str | None:
    return None if since is None else datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")


def _profile(profile: RankingProfile) -> dict[str, Any]:
    """Return the active parts of a profile."""
    strategy = profile.strategy
    parts: dict[str, Any] = {}
    if strategy.fit is not None:
        parts["fit"] = _fit(strategy.fit)
    if strategy.sra is not None:
        parts["sra"] = _sra(strategy.sra)
    if strategy.proportional is not None:
        parts["proportional"] = _proportional(strategy.proportional)
    if profile.compactness:
        parts["compactness"] = {"weight": _plain(profile.compactness)}
    if profile.fragmentation is not None:
        parts["fragmentation"] = _fragmentation(profile.fragmentation)
    return parts


def _fit(fit: Fit) -> dict[str, Any]:
    resources = {
        name: {"type": preference.type, "weight": _plain(preference.weight)}
        for name, preference in fit.resources.items()
    }
    return {"weight": _plain(fit.weight), "resources": resources}


def _sra(sra: Sra) -> dict[str, Any]:
    return {"weight": _plain(sra.weight), "mode": sra.mode, "resources": _numbers(sra.resources)}


def _proportional(policy: Proportional) -> dict[str, Any]:
    reserve = {primary: _numbers(secondaries) for primary, secondaries in policy.reserve.items()}
    return {"mode": policy.mode, "exempt": policy.exempt, "reserve": reserve}


def _devices(devices: DeviceSettings, levels: Collection[str]) -> dict[str, Any]:
    types = {name: _device_type(kind) for name, kind in devices.types.items()}
    scopes = {"same_pcie": devices.same_pcie, "same_numa": devices.same_numa}
    in_force = {scope: level for scope, level in scopes.items() if level in levels}
    maps = {"base": dict(devices.base), "host": dict(devices.host), "labels": dict(devices.labels)}
    return {"types": types, **maps, **in_force}


def _device_type(kind: DeviceType) -> dict[str, Any]:
    optional = {"virtual_function": kind.virtual_function, "shared": kind.shared}
    return {
        "class": kind.resource_class,
        "whole": kind.whole,
        "label_prefix": kind.label_prefix,
        "resources": dict(kind.resources),
        **{key: value for key, value in optional.items() if value is not None},
    }


def _fragmentation(settings: FragmentationSettings) -> dict[str, Any]:
    """Return how fragmentation is judged; without flavors, expected work is learnt."""
    shown: dict[str, Any] = {
        "weight": _plain(settings.weight),
        "devices": settings.devices,
        "size": settings.size,
        "kinds": list(settings.kinds),
        "beside": list(settings.beside),
        "refresh_s": settings.refresh_s,
    }
    if settings.flavors:
        shown["flavors"] = {name: _flavor(flavor) for name, flavor in settings.flavors.items()}
    return shown


def _flavor(flavor: ExpectedWork) -> dict[str, Any]:
    task = flavor.task
    shown: dict[str, Any] = {"weight": _plain(flavor.weight), "resources": dict(task.amounts)}
    if task.devices:
        shown |= {"devices": task.devices, "share": task.share, "kinds": sorted(task.kinds)}
    return shown


def _numbers(entries: Mapping[str, Number]) -> dict[str, int | float]:
    return {name: _plain(number) for name, number in entries.items()}


def _plain(number: Number) -> int | float:
    return float(number) if isinstance(number, Fraction) else number


ROUTES = (
    Route("GET", f"{PLANNER_PATH}/profiles", list_profiles, rule="placement:planner:profiles:list", answers_json=True),
)
