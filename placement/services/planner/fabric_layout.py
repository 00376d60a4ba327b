"""The hosts of a cloud as the fabric for a gang: the racks they are in, and what they have left."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from placement.allocators.fabric import Site
from placement.domain.fabric import FabricLevel, GangRules, names_of_hosts
from placement.domain.overlay import Overlay
from placement.services.planner.host_room import HostRoom
from placement.store.connection.unit_of_work import Transaction
from placement.store.marks import hosts_in

EVERYWHERE = "everywhere"
"""The single place of a gang that may go anywhere."""

Free = Mapping[int, Sequence[float] | None]
"""By root, what a tree has left of some classes, or an upper bound; None if unknown."""


class Located(NamedTuple):
    """A level of the fabric, with the place of each host."""

    level: FabricLevel
    names: Mapping[int, str]

    def place(self, root: int) -> Hashable:
        """Return the place of a host, None if it is in none."""
        return root if self.level.is_host else self.names.get(root)


class OnePerPlace:
    """Closes a place once it has a member of the gang. Hosts outside all places are never open."""

    def __init__(self, located: Located) -> None:
        self._located = located
        self._hosts: dict[Hashable, list[int]] = defaultdict(list)
        for root, name in located.names.items():
            self._hosts[name].append(root)

    def is_open(self, root: int) -> bool:
        """Tell whether a host may be used at all."""
        return self._located.place(root) is not None

    def beside(self, root: int) -> Sequence[int]:
        """Return the hosts that a member on a host closes, including that host."""
        return [root] if self._located.level.is_host else self._hosts[self._located.names[root]]


def located(tx: Transaction, level: FabricLevel) -> Located:
    """Return the place of each host on a level."""
    members = hosts_in(tx, {*chain.from_iterable(level.places.values())})
    return Located(level, names_of_hosts(level.places, members))


def fabric_layout(tx: Transaction, rules: GangRules, room: HostRoom, overlay: Overlay) -> "FabricLayout":
    """Return the sites for one gang in one snapshot.

    Args:
        tx: the snapshot.
        rules: how members have to lie.
        room: what they want.
        overlay: assumed changes before any of them is placed.
    """
    together = rules.together
    # A preference for few hosts holds anywhere, so it needs no places.
    is_anywhere = together is None or (together.level.is_host and not together.required)
    return FabricLayout(
        room,
        overlay,
        together=None if together is None or is_anywhere else located(tx, together.level),
        apart=located(tx, rules.apart) if rules.apart else None,
        takes_all=together is not None and not together.required,
    )


class FabricLayout:
    """The sites for one gang in one snapshot.

    Args:
        room: what its members want.
        overlay: assumed changes before any of them is placed.
        together: the places in which members lie together; None if they may lie anywhere.
        apart: the places in which members lie apart; None if they need not.
        takes_all: whether hosts outside of all places to lie together in will do.
    """

    def __init__(
        self,
        room: HostRoom,
        overlay: Overlay,
        *,
        together: Located | None,
        apart: Located | None,
        takes_all: bool,
    ) -> None:
        self._room = room
        self._overlay = overlay
        self._together = together
        self._apart = apart
        self._takes_all = takes_all
        self.requested = [search.prepared.composer.requested for search in room.searches]
        """What a member of each kind wants of each class."""
        self.classes = sorted({name for amounts in self.requested for name in amounts})

    def sites(self) -> list[Site]:
        """Return the hosts that may serve, best first, with the sums of what their trees have left.

        A provider over capacity may push such a sum below what the others in the tree have left.
        """
        number = len(self.classes)
        rows = self._room.questions[0].cloud.reader.sums(self.classes, ())
        return self._sites({row[0]: [row[at] - row[at + number] for at in range(1, number + 1)] for row in rows})

    def sites_by_provider(self) -> list[Site]:
        """Return these hosts, best first, with sums over what each provider has left: slower, but never too low."""
        return self._sites(self._room.questions[0].left_in_trees(self.classes))

    def _sites(self, free: Free) -> list[Site]:
        questions = self._room.questions
        if not all(question.cloud.reader.is_possible for question in questions):
            return []
        known = {**free}
        if any(question.has_sharing for question in questions):
            readers = [question.reader(self._overlay) for question in questions]
            known = dict.fromkeys([tree.root for reader in readers for tree in reader.all_trees()])
        # An overlay may give something back there, so leave the answer to search.
        changed = questions[0].cloud.reader.serving.columns.providers.root_of(self._overlay.changes)
        known.update(dict.fromkeys(changed.values()))
        sites = [self._site(root, known[root]) for root in self._in_order([*known])]
        return [site for site in sites if site is not None]

    def _site(self, root: int, free: Sequence[float] | None) -> Site | None:
        """Return a host as a site, or None if it lacks a place that the rules need."""
        place: Hashable = self._together.place(root) if self._together else EVERYWHERE
        if place is None and self._takes_all:
            place = ("alone", root)
        part = self._apart.place(root) if self._apart else None
        return None if place is None or (self._apart and part is None) else Site(root, place, free, part=part)

    def _in_order(self, roots: Sequence[int]) -> list[int]:
        questions = self._room.questions
        left_out = self._overlay.avoided.union(*[question.avoided for question in questions])
        only = {question.cloud.reader.only_root for question in questions}
        wanted = [root for root in roots if root not in left_out and (None in only or root in only)]
        return self._room.searches[0].in_order(wanted)
