"""How many of a mix of requests fit, such as seven small ones for three with GPUs: exact while the steps last.

Of n copies in all, each request has its share, rounded down. Upper bounds are what each request alone allows and what
is free of each class; what each tree can serve at a time decides the rest.
"""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from placement.allocators.headroom import Copies, copies_of_mix, most_in_all, parts_of
from placement.candidates.headroom.counting import total
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.mixed_rooms import MixedRooms, PoolLimit
from placement.candidates.headroom.totals import Headroom
from placement.domain.search_plan import Plan


def of_mix(
    shares: Mapping[str, Fraction],
    plans: Mapping[str, Plan],
    found: Mapping[str, Headroom],
    cloud: CloudInForms,
    *,
    ruled: Collection[str] = (),
) -> Copies:
    """Return how many copies of a mix fit, all requests together.

    Args:
        shares: the share of all copies that each request has; they add up to 1.
        plans: the requests.
        found: the headroom of each alone.
        cloud: the cloud.
        ruled: requests with rules beyond their plans; what trees serve of these together with others is unknown.
    """
    parts = [*shares.values()]
    mixed = MixedRooms(shares, plans, found, cloud, ruled=ruled)
    alone = [most_in_all(found[name].copies.most, share) for name, share in shares.items()]
    most = min([*alone, *_by_class(shares, plans, cloud)])
    most = min([most, *[_within(limit, parts, most) for limit in mixed.limits]])
    return copies_of_mix(parts, [*mixed.rooms(parts_of(most, parts))], most)


def _within(limit: PoolLimit, shares: Sequence[Fraction], most: int) -> int:
    """Return how many copies a pool allows."""

    def taken(copies: int) -> int:
        return sum(map(int.__mul__, limit.amounts, parts_of(copies, shares)))

    return bisect_right(range(most + 1), limit.free, key=taken) - 1


def _by_class(shares: Mapping[str, Fraction], plans: Mapping[str, Plan], cloud: CloudInForms) -> Sequence[int]:
    """Return for each class the bound given by all that is free; rounding costs a request at most one copy."""
    asked: dict[int, list[tuple[Fraction, int]]] = defaultdict(list)
    for name, share in shares.items():
        amounts: Counter[int] = Counter()
        for slot in plans[name].slots:
            amounts.update({cloud.ids.classes[of_class]: amount for of_class, amount in slot.resources})
        for class_id, amount in amounts.items():
            asked[class_id].append((share, amount))
    return [
        math.floor(
            (total(cloud.free[class_id]) + sum([amount for _share, amount in each])) / sum([s * a for s, a in each])
        )
        for class_id, each in asked.items()
    ]
