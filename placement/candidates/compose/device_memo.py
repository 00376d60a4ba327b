"""The device allocator with a memo: hosts of a cloud are much alike, so most of them are the same problem again."""

from placement.allocators.budget import Budget
from placement.allocators.devices import Device, DeviceAllocations, Group, Host, Request, allocate
from placement.allocators.natural_order import natural_key
from placement.candidates.canonical import CanonicalForm, Memo

MOST_HOSTS = 10_000
"""So many forms are remembered: allocating again would cost steps again."""


class DeviceMemo:
    """Allocates for the hosts of one request, but once for all hosts of one canonical form.

    The form has numbers instead of names, in the natural order of the names: that is all that matters of them.

    Args:
        most: how many ways are wanted of each host.
        any_way: whether any way will do, and not only the best.
    """

    def __init__(self, *, most: int, any_way: bool = False) -> None:
        self._most = most
        self._any_way = any_way
        self._memo: Memo[DeviceAllocations] = Memo(MOST_HOSTS)

    def allocate(self, host: Host, request: Request, budget: Budget) -> tuple[DeviceAllocations, list[str]]:
        """Return what the allocator finds, with numbers as names, and the names by number.

        Where no steps are left, only what has been worked out already is found.
        """
        names = sorted([device.name for device in host.devices], key=natural_key)
        numbers = {name: str(number) for number, name in enumerate(names)}
        plain = _renamed(host, numbers, names)
        groups = tuple([_with_numbers(group, numbers) for group in request.groups])
        form = _form(plain, groups)
        found = self._memo.get(form)
        if found is None and budget.is_used_up:
            return DeviceAllocations((), complete=False), names
        if found is None:
            wanted = Request(groups=groups, joint=request.joint, within=request.within, conditions=request.conditions)
            found = allocate(plain, wanted, most=self._most, budget=budget, any_way=self._any_way)
            self._memo.remember(form, found)
        return found, names


def _renamed(host: Host, numbers: dict[str, str], names: list[str]) -> Host:
    """Return a host whose devices and places have numbers as names; places are numbered as they are met."""
    devices = {device.name: device for device in host.devices}
    places: dict[str, str] = {}
    plain = []
    for name in names:
        path = [
            None if place is None else places.setdefault(place, f"place {len(places)}") for place in devices[name].path
        ]
        card = devices[name].card
        plain.append(
            Device(
                numbers[name],
                tuple(path),
                devices[name].room,
                places.setdefault(card, f"place {len(places)}") if card else "",
            )
        )
    # A device may be a place, too.
    in_use = frozenset([known[name] for known in (numbers, places) for name in host.in_use if name in known])
    return Host(host.levels, tuple(plain), in_use, host.uncounted)


def _with_numbers(group: Group, numbers: dict[str, str]) -> Group:
    return Group(
        label=group.label,
        options={numbers[name]: misfit for name, misfit in group.options.items()},
        count=group.count,
        per_subtree=group.per_subtree,
        amounts=group.amounts,
        apart=group.apart,
        exclusive=group.exclusive,
        by_card=group.by_card,
        takes=group.takes,
        meets={numbers[name]: mask for name, mask in group.meets.items() if name in numbers},
    )


def _form(host: Host, groups: tuple[Group, ...]) -> CanonicalForm:
    """Return what tells problems of one request apart; labels, amounts and rules are the request's."""
    devices = tuple([(device.path, tuple(device.room.items()), device.card) for device in host.devices])
    wanted = tuple([(one.count, _items(one.options), _items(one.meets)) for one in groups])
    return (devices, host.in_use, wanted)


def _items(numbers: object) -> tuple[tuple[str, int], ...]:
    assert isinstance(numbers, dict)
    return tuple(sorted(numbers.items()))
