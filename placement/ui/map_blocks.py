"""The cells of a map and the blocks that contain them: a zone with its racks, each with its hosts and figures."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import NamedTuple

from placement.allocators.bundle_packing import Copies
from placement.domain.planner_request import names_of_hosts
from placement.domain.quantities import amount_in_words
from placement.services.console.cloud_map import CloudMap
from placement.store.console.providers import NamedHost
from placement.ui.filters import percent, visible

MAX_CELLS = 2000
"""How many hosts have cells on one page; with more hosts, the blocks of the outermost kind are folded."""

SHADES = 10
UNGROUPED = "-"
"""The key in addresses for hosts that are in no group of the outermost kind."""

Kinds = Mapping[str, Mapping[str, Sequence[str]]]
"""kind -> name -> aggregates, the outermost kind first."""


class HostCell(NamedTuple):
    """A host on the map: the shortest unique beginning of its uuid, classes of the stylesheet, a number, and words."""

    key: str
    marks: str
    number: str
    words: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over some hosts; ``copies``, ``free`` and ``stranded`` are set only if there is a request."""

    hosts: int
    disabled: int
    used: int
    capacity: int
    copies: Copies | None = None
    with_room: int = 0
    free: int = 0
    stranded: int = 0
    shades: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Hosts in a group of some kind, or in none of that kind (``name`` is empty then).

    It has no cells if it is folded, or if they are in the ``blocks`` of groups inside it.
    """

    kind: str
    name: str
    figures: Figures
    cells: Sequence[HostCell] = ()
    blocks: "Sequence[Block]" = ()

    @property
    def key(self) -> str:
        """The block's key in addresses."""
        return self.name or UNGROUPED

    @property
    def across(self) -> int:
        """How many cells are in a row when the block is one of many."""
        return min(12, max(4, isqrt(2 * len(self.cells))))


@dataclass(frozen=True, slots=True)
class Groups:
    """Which hosts are in which groups: by kind, the host's group; of several, the first in the planner file."""

    kinds: Kinds
    group_of_host: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    @classmethod
    def made(cls, kinds: Kinds, members: Mapping[str, Sequence[int]]) -> "Groups":
        """Return the groups, given the roots of the trees in each aggregate."""
        return cls(kinds, {kind: names_of_hosts(names, members) for kind, names in kinds.items()})

    def split(self, kind: str, hosts: Sequence[NamedHost]) -> dict[str, list[NamedHost]]:
        """Return hosts by their group of a kind, in the planner file's order; hosts in none come last, as ``""``."""
        group_of = self.group_of_host[kind]
        by_name: dict[str, list[NamedHost]] = {name: [] for name in (*self.kinds[kind], "")}
        for host in hosts:
            by_name[group_of.get(host.id, "")].append(host)
        return {name: members for name, members in by_name.items() if members}


class Blocks:
    """Builds the blocks of a map.

    ``places`` has each root's place in a profile's order, if places are shown instead of how many copies fit; ``moved``
    are the roots that the other profile places differently.
    """

    def __init__(
        self,
        cloud: CloudMap,
        groups: Groups,
        *,
        places: Mapping[int, int] | None = None,
        moved: AbstractSet[int] = frozenset(),
    ) -> None:
        self._cloud = cloud
        self._groups = groups
        self._places = places
        self._moved = moved
        self._key_length = _key_length([host.uuid for host in cloud.hosts])
        self.domain = _domain([host.name for host in cloud.hosts])

    def unfolded(self, hosts: Sequence[NamedHost], kinds: Sequence[str]) -> list[Block]:
        """Return hosts in blocks of the outermost kind that any of them is in, with blocks of inner kinds inside."""
        for number, kind in enumerate(kinds):
            by_name = self._groups.split(kind, hosts)
            if [*by_name] != [""]:
                inner = kinds[number + 1 :]
                return [self._block(kind, name, members, inner) for name, members in by_name.items()]
        return [Block("", "", self.figures(hosts), cells=[self._cell(host) for host in hosts])]

    def folded(self, hosts: Sequence[NamedHost], kind: str) -> list[Block]:
        """Return only the figures of each group of a kind."""
        return [Block(kind, name, self.figures(members)) for name, members in self._groups.split(kind, hosts).items()]

    def _block(self, kind: str, name: str, hosts: Sequence[NamedHost], inner: Sequence[str]) -> Block:
        blocks = self.unfolded(hosts, inner)
        if len(blocks) == 1 and not blocks[0].kind:
            return Block(kind, name, blocks[0].figures, cells=blocks[0].cells)
        return Block(kind, name, self.figures(hosts), blocks=blocks)

    def figures(self, hosts: Sequence[NamedHost]) -> Figures:
        """Return sums over some hosts."""
        cloud, ids = self._cloud, {host.id for host in hosts}
        stocks = [cloud.stocks[id_] for id_ in ids & cloud.stocks.keys()]
        figures = Figures(
            hosts=len(ids),
            disabled=len(ids & cloud.disabled),
            used=sum([used for _capacity, used in stocks]),
            capacity=sum([capacity for capacity, _used in stocks]),
            shades=sorted(Counter([_shade(*stock) for stock in stocks]).items()),
        )
        room = cloud.room
        if room is None:
            return figures
        return replace(
            figures,
            copies=room.copies if len(ids) == len(cloud.hosts) else room.among(ids),
            with_room=len(ids & room.fits.keys()),
            free=sum([room.free[id_] for id_ in ids & room.free.keys()]),
            stranded=sum([room.stranded[id_] for id_ in ids & room.stranded.keys()]),
        )

    def _cell(self, host: NamedHost) -> HostCell:
        cloud, id_ = self._cloud, host.id
        stock = cloud.stocks.get(id_)
        marks = [f"f{_shade(*stock)}" if stock else "no"]
        words = [visible(host.name.removesuffix(self.domain)), percent(stock[1], stock[0]) if stock else "none"]
        number = ""
        if cloud.room is not None:
            fits = cloud.room.fits.get(id_)
            number = _short(fits) if fits else ""
            at_least = "" if fits and fits.is_exact else "at least "
            words.append(f"{at_least}{fits.least:,} fit" if fits else "no room")
            if id_ in cloud.room.stranded:
                marks.append("s")
                stranded = amount_in_words(cloud.room.stranded[id_], cloud.room.scarce)
                words.append(f"{stranded} {cloud.room.scarce} stranded")
        if self._places is not None:
            number = str(self._places[id_]) if id_ in self._places else ""
            words += [f"place {number}"] if number else []
        words += ["disabled"] if id_ in cloud.disabled else []
        sets = {"d": cloud.disabled, "m": self._moved, "l": cloud.lit or ()}
        marks += [mark for mark, ids in sets.items() if id_ in ids]
        return HostCell(host.uuid[: self._key_length], " ".join(marks), number, f"{words[0]} {', '.join(words[1:])}")


def rows_of(blocks: Sequence[Block], depth: int = 0) -> Iterator[tuple[int, Block]]:
    """Yield each block of a kind before the blocks inside it, with its depth."""
    for block in blocks:
        if block.kind:
            yield depth, block
            yield from rows_of(block.blocks, depth + 1)


def _shade(capacity: int, used: int) -> int:
    """Return a shade from 0 (unused) to SHADES (full); both extremes are reserved for exactly these cases."""
    if used <= 0:
        return 0
    if used >= capacity:
        return SHADES
    return min(SHADES - 1, 1 + used * (SHADES - 1) // capacity)


def _short(copies: Copies) -> str:
    """Return how many fit, in as few characters as a cell has room for."""
    least = copies.least
    shown = str(least) if least < 1000 else f"{least // 1000}k" if least < 100_000 else "…"
    return shown if copies.is_exact else f"{shown}+"


def _key_length(uuids: Sequence[str]) -> int:
    """Return the length of the shortest unique prefix of uuids, out of three choices."""
    return next((length for length in (8, 18) if len({uuid[:length] for uuid in uuids}) == len(uuids)), 36)


def _domain(names: Sequence[str]) -> str:
    """Return the most common domain with its leading dot, if more than half of the names have it; else empty."""
    domains = Counter([domain for name in names if (domain := name.partition(".")[2])])
    domain, count = next(iter(domains.most_common(1)), ("", 0))
    return f".{domain}" if 2 * count > len(names) else ""
