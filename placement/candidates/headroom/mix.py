"""How many of a mix of requests fit, such as seven small ones for three with GPUs: between two bounds.

Of n copies in all each request has its share, cut off. No more fit than each request alone allows, and than all that is
free of a class suffices for. So many certainly fit: every tree is given to one request as a whole, always to the one
that is furthest behind its share.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from placement.allocators.headroom import ENDLESS, Copies
from placement.candidates.headroom.fleets import Fleets
from placement.candidates.headroom.headroom import Headroom
from placement.domain.search_plan import Plan


def of_mix(
    shares: Mapping[str, Fraction], plans: Mapping[str, Plan], found: Mapping[str, Headroom], fleets: Fleets
) -> Copies:
    """Return how many copies of a mix fit, all requests together.

    Args:
        shares: how large a part of all copies each request has; they add up to 1.
        plans: the requests.
        found: the headroom of each alone.
        fleets: the cloud.
    """
    alone = min([_most_in_all(found[name].copies.most, share) for name, share in shares.items()])
    most = min([alone, *_by_class(shares, plans, fleets)])
    return Copies(min(most, _apart(shares, found)), most)


def _most_in_all(copies: int, share: Fraction) -> int:
    """Return the largest number of which a share, cut off, is no more than so many copies."""
    return min(ENDLESS, math.ceil((copies + 1) / share) - 1)


def _by_class(shares: Mapping[str, Fraction], plans: Mapping[str, Plan], fleets: Fleets) -> Sequence[int]:
    """Return for each class the bound by all that is free of it; a request takes less than its share by one at most."""
    free: Counter[int] = Counter()
    for fleet in fleets.fleets:
        for (_place, class_id), column in fleet.free.items():
            free[class_id] += sum(column)
    asked: dict[int, list[tuple[Fraction, int]]] = defaultdict(list)
    for name, share in shares.items():
        amounts: Counter[int] = Counter()
        for slot in plans[name].slots:
            amounts.update({fleets.cloud.classes[of_class]: amount for of_class, amount in slot.resources})
        for class_id, amount in amounts.items():
            asked[class_id].append((share, amount))
    return [
        math.floor((free[class_id] + sum([amount for _share, amount in each])) / sum([s * a for s, a in each]))
        for class_id, each in asked.items()
    ]


def _apart(shares: Mapping[str, Fraction], found: Mapping[str, Headroom]) -> int:
    """Return how many fit if every tree serves one request alone; what is shared is left out."""
    room: dict[int, dict[str, int]] = defaultdict(dict)
    for name in shares:
        for one in found[name].counted:
            if not one.is_shared:
                for root, least in zip(one.fleet.trees, one.least, strict=True):
                    if least:
                        room[root][name] = least
    have = dict.fromkeys(shares, 0)
    # Trees that serve few requests first: the others can make up for them.
    for _root, of_tree in sorted(room.items(), key=lambda one: (len(one[1]), one[0])):
        behind = min(of_tree, key=lambda name: (have[name] / shares[name], name))
        have[behind] += of_tree[behind]
    return min([_most_in_all(copies, shares[name]) for name, copies in have.items()])
