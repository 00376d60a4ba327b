"""Filters the options of groups that have to be in one place: keeps places with enough for all of those groups."""

from collections.abc import Sequence

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.request import Host, InOnePlace, Request
from placement.allocators.devices.supplies import PlacedOption, Supplies


def without_places_too_small(host: Host, request: Request, options: Sequence[DeviceOption]) -> Sequence[DeviceOption]:
    """Drop options in places where the other groups of an in-one-place rule cannot be served.

    The devices of dropped options still count as free, or a place would appear smaller than it is.
    """
    for rule in request.within:
        if rule.required and rule.stands_for == 1:
            options = _in_places_for_all(host, request, options, rule)
    return options


def _in_places_for_all(
    host: Host, request: Request, options: Sequence[DeviceOption], rule: InOnePlace
) -> Sequence[DeviceOption]:
    level = host.levels.index(rule.level)
    confined = {index for index, group in enumerate(request.groups) if group.label in rule.groups}
    places: dict[str | None, int] = {}
    placed = [
        PlacedOption(places.setdefault(one.device.path[level], 1 << len(places)), one)
        for one in options
        if one.group in confined
    ]
    supplies = Supplies(request, confined, placed)
    large = {place for place, bit in places.items() if supplies.suffice(bit)}
    return [one for one in options if one.group not in confined or one.device.path[level] in large]
