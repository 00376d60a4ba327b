"""What the device allocator works on: the devices of one host with their places, and what is asked of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

THE_DEVICE = "device"
"""The level of the devices themselves, for what is to be exclusive."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a host.

    Args:
        name: tells it from the others; breaks ties, in natural order.
        path: the place it is in at each level of the host; None where it is in none.
        room: how much is left of the resource classes that several groups may want of it; of others it does not matter.
        card: what it is a part of, as virtual functions are of a NIC; "" if it is all there is.
    """

    name: str
    path: tuple[str | None, ...]
    room: Mapping[str, float] = field(default_factory=dict)
    card: str = ""

    @property
    def whole(self) -> str:
        """The name of its card, or its own if it is no part of one."""
        return self.card or self.name


@dataclass(frozen=True, slots=True)
class Host:
    """The devices of a host.

    Args:
        levels: the kinds of places (NUMA node, PCIe switch), those first that count most. They lie inside each other,
            most often in this order.
        devices: the devices, in any order.
        in_use: the names of the devices and places of which somebody holds something, of themselves or inside.
        uncounted: so many of the last levels matter to rules alone: how many of their places are touched does not.
    """

    levels: tuple[str, ...]
    devices: tuple[Device, ...]
    in_use: frozenset[str] = frozenset()
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Devices that are wanted because each can do the same.

    Args:
        label: tells it from the other groups.
        options: the devices that could serve it, each with how ill it fits: of equals the lowest sum is taken.
        count: how many different devices.
        per_subtree: one for each place that the primary group of its joint allocation uses, but at least ``count``.
        amounts: what it takes of each device, of the classes that devices have a ``room`` for.
        apart: shares no device with another group that is apart.
        exclusive: levels; the place around each device must not be in use by anybody else.
        by_card: whether it takes one device of a card at most: different devices are of different cards then.
        meets: which of the request's shared conditions each option meets, as a bit mask.
        takes: whether it takes anything of its devices: only then their places count as touched.
        stands_for: how many groups that want the same it is searched for; rules go for each of them.
    """

    label: str
    options: Mapping[str, int]
    count: int = 1
    per_subtree: bool = False
    amounts: Mapping[str, int] = field(default_factory=dict)
    apart: bool = True
    exclusive: tuple[str, ...] = ()
    by_card: bool = False
    meets: Mapping[str, int] = field(default_factory=dict)
    takes: bool = True
    stands_for: int = 1

    @property
    def turns(self) -> int:
        """How often one device may be taken: once for each group that it stands for, unless they are apart."""
        return 1 if self.apart else self.stands_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Groups that are allocated together: where devices of the primary group are, there the secondaries are, too.

    Required: in every place of the level that has a primary there is each secondary, and there is none elsewhere.
    Preferred: as few primaries as possible are in a place without each secondary, and as few secondaries as possible in
    one without a primary; they may come from anywhere.
    """

    primary: str
    secondaries: tuple[str, ...]
    level: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InOnePlace:
    """Groups whose devices are all in one place of a level; if only preferred, in as few as possible.

    Args:
        groups: their labels.
        level: the level.
        required: whether no other way will do.
        condition: the shared condition that is met by a device that is such a place, if there is one.
        stands_for: how many rules, each about as many groups, it is searched for: in each place are a number of them.
    """

    groups: tuple[str, ...]
    level: str
    required: bool = True
    condition: int | None = None
    stands_for: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of one host; ``conditions`` is how many the devices have to meet together."""

    groups: tuple[Group, ...]
    joint: tuple[Joint, ...] = ()
    within: tuple[InOnePlace, ...] = ()
    conditions: int = 0
