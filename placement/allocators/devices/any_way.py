"""Finds any way to serve a request without rules, in which only room decides.

Groups that ask for different classes do not compete, unless they must not share a device. So they are served apart from
each other: the counts of devices of one class then do not multiply with those of another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from placement.allocators.budget import Budget
from placement.allocators.devices.assigned import assigned
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import FixedCosts, GroupMisfits
from placement.allocators.devices.request import Host, Request
from placement.allocators.devices.search import Knapsack
from placement.allocators.devices.tables import Limits


def has_no_rules(request: Request) -> bool:
    """Tell whether no rule concerns several devices, so that only room decides."""
    return not (request.joint or request.within or request.conditions)


def any_way(
    request: Request, options: Sequence[DeviceOption], budget: Budget, *, misfits: GroupMisfits
) -> list[DeviceOption] | None:
    """Return options that serve a request without rules, at any cost; None if none were found.

    That proves that there are none, unless the budget was hit.
    """
    found: list[DeviceOption] = []
    for groups in _independent(request):
        part = [option for option in options if option.group in groups]
        alone = tuple([replace(one, count=one.count * (n in groups)) for n, one in enumerate(request.groups)])
        some = _any_way_of(replace(request, groups=alone), part, budget, misfits)
        if some is None:
            return None
        found += some
    return sorted(found)


def _independent(request: Request) -> Iterator[set[int]]:
    """Yield the groups, by index, in sets that do not compete with each other."""
    sets: list[tuple[set[object], set[int]]] = []
    for number, group in enumerate(request.groups):
        uses: set[object] = {*group.amounts} | ({None} if group.apart else set())
        touched = [one for one in sets if not one[0].isdisjoint(uses)]
        sets = [one for one in sets if one not in touched]
        sets.append((uses.union(*[one[0] for one in touched]), {number}.union(*[one[1] for one in touched])))
    yield from [groups for _uses, groups in sets]


def _any_way_of(
    request: Request, options: Sequence[DeviceOption], budget: Budget, misfits: GroupMisfits
) -> list[DeviceOption] | None:
    budget.take(len(options))
    some = None if any([group.by_card for group in request.groups]) else assigned(request, options)
    if some is not None:
        return some
    # Where a device lies does not matter, so the search need not go place by place.
    plain = [
        option._replace(number=number, device=replace(option.device, path=())) for number, option in enumerate(options)
    ]
    host = Host((), tuple({option.device.name: option.device for option in plain}.values()))
    own = FixedCosts(host, request, plain).with_misfits(misfits)
    costs = Knapsack(host, request, plain, own=own, most=1, limits=Limits(budget)).run(plain)
    return [options[number] for number in own.packing.chosen(costs[0])] if costs else None
