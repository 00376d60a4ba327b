"""Which options remain for groups that are to be in one place: those in places that have enough for all of them."""

from collections.abc import Sequence
from dataclasses import replace

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.request import Host, InOnePlace, Request
from placement.allocators.devices.supplies import PlacedOption, Supplies


def without_places_too_small(host: Host, request: Request, options: Sequence[DeviceOption]) -> Sequence[DeviceOption]:
    """Return options without those in places where the other groups that have to be there cannot be.

    What is left out still counts as free: a place is no smaller for it.
    """
    for rule in request.within:
        if rule.required and rule.stands_for == 1:
            options = _in_places_for_all(host, request, options, rule)
    return options


def _in_places_for_all(
    host: Host, request: Request, options: Sequence[DeviceOption], rule: InOnePlace
) -> Sequence[DeviceOption]:
    level = host.levels.index(rule.level)
    confined = [group.label in rule.groups for group in request.groups]
    places: dict[str | None, int] = {}
    placed = [
        PlacedOption(0, places.setdefault(one.device.path[level], 1 << len(places)), one)
        for one in options
        if confined[one.group]
    ]
    groups = [group if own else replace(group, count=0) for group, own in zip(request.groups, confined, strict=True)]
    supplies = Supplies(replace(request, groups=tuple(groups)), placed)
    large = {place for place, bit in places.items() if supplies.suffice(bit)}
    return [one for one in options if not confined[one.group] or one.device.path[level] in large]
