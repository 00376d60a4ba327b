"""The lower bound on the cost of a host, compared with every choice of its tenants."""

import random
from itertools import combinations

import pytest

from placement.allocators.fair_share import Branch, FairShares, Held, Leaf
from placement.allocators.fair_share.rights import ClaimRights
from placement.allocators.fair_share.tenants import Tenant, Tenants, never

ROOT = Branch("root", (Branch("rich", (Leaf("r"),)), Branch("poor", (Leaf("p"),))))
CLASSES = ("cpu", "gpu")
VALUES = {value: value for value in range(10)}


def tenants_of(rng: random.Random) -> list[Tenant]:
    amounts = [{name: rng.randint(0, 4) for name in CLASSES} for _one in range(rng.randint(1, 7))]
    return [
        Tenant(
            Held(f"vm{number}", "root/rich/r", of, rng.randint(0, 9)),
            tuple((1, name, amount) for name, amount in of.items()),
            of,
        )
        for number, of in enumerate(amounts)
    ]


def cheapest(tenants: list[Tenant], missing: dict[str, int]) -> tuple[int, int] | None:
    """Return the least cost of a choice whose sums are enough, if somebody has to go."""
    costs = [
        (size, sum(one.held.value for one in chosen))
        for size in range(1, len(tenants) + 1)
        for chosen in combinations(tenants, size)
        if all(sum(one.inside[name] for one in chosen) >= need for name, need in missing.items())
    ]
    return min(costs, default=None)


@pytest.mark.parametrize("seed", range(200))
def test_nothing_costs_less_than_the_bound(seed: int) -> None:
    rng = random.Random(seed)
    tenants, missing = tenants_of(rng), {name: rng.randint(-2, 9) for name in CLASSES}
    used = {name: sum(one.inside[name] for one in tenants) for name in CLASSES}
    shares = FairShares(ROOT, {"cpu": 99, "gpu": 99}, usage={"root/rich/r": used})
    rights = ClaimRights(shares, "root/poor/p", {"cpu": 1}, classes=CLASSES)
    here = Tenants(
        rights,
        tenants,
        missing=missing,
        values={value: value for value in range(10)},
        is_free=never,
    )
    expected = cheapest(tenants, missing)
    bound = here.bound
    if expected is None:
        assert bound is None or bound[0] > max(1, len(tenants) - 1)
    else:
        assert bound is not None
        assert bound <= expected
