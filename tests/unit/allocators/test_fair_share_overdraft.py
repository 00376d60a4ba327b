"""What a queue takes beyond its share if every queue wants more of what it uses."""

import random
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.fair_share.gate import Shortage, beyond_entitlement, overdraft
from placement.allocators.fair_share.state import FairShares
from tests.examples import examples
from tests.unit.allocators.fair_share_entitlement_oracle import amount_in, entitlements
from tests.unit.allocators.fair_share_trees import leaf_paths, limits_of, random_tree, tree


def found_for(parts, total: int, usage: dict[str, int], **taken: int):
    shares = FairShares(
        tree("n", parts), {"g": total}, usage={leaf: {"g": amount} for leaf, amount in usage.items() if amount}
    )
    found = overdraft(shares, {leaf: {"g": amount} for leaf, amount in taken.items()})
    return found and (found.path, found.holds, found.allowance, found.shortage)


def test_a_unit_that_has_been_begun_may_be_had() -> None:
    """Ten units among three queues: nobody is entitled to four, and the tenth would be idle forever."""
    three = {"a": {"x": "g", "y": "g", "z": "g"}}
    usage = {"n/a/x": 4, "n/a/y": 3, "n/a/z": 3}
    assert found_for(three, 10, usage, **{"n/a/x": 1}) is None
    assert found_for(three, 11, usage | {"n/a/x": 5}, **{"n/a/x": 1}) == (
        "n/a/x",
        5,
        4,
        Shortage(0, pytest.approx(4 / 3)),
    )


def test_who_gave_everything_in_the_same_request_still_wants_it() -> None:
    """The allocations of y become those of x: x, with nine of ten, is judged beside what y had."""
    one = {"q": {"x": "g", "y": "g"}}
    found = found_for(one, 10, {"n/q/x": 9, "n/q/y": 0}, **{"n/q/x": 4, "n/q/y": -4})
    assert found == ("n/q/x", 9, 5, Shortage(1, 5.0))


@examples(200)
@given(st.integers(0, 10**9))
def test_it_is_as_the_words_say(seed: int) -> None:
    """Compared with the model of entitlements, on random trees with limits, one class at a time."""
    rng = random.Random(seed)
    root = random_tree(rng, limited=True)
    total, leaves = rng.choice([5, 10, 37]), list(leaf_paths(root))
    used = {leaf: rng.choice([0, 1, 2, 5]) for leaf in leaves}
    taken = {leaf: rng.randint(-2, 3) for leaf in rng.sample(leaves, rng.randint(0, len(leaves)))}
    wanting = {leaf: 10**9 for leaf in leaves if used[leaf] or taken.get(leaf, 0) < 0}
    entitled = entitlements(root, total, used, wanting, "gpu")
    added = {leaf: max(0, amount) for leaf, amount in taken.items()}
    grown = [path for path in entitled if path != "root" and amount_in(root, path, added) > 0]
    over_limit = [
        path for path in grown if amount_in(root, path, used) > limits_of(root).get(path, {}).get("gpu", 10**9)
    ]
    over = [path for path in grown if amount_in(root, path, used) > ceil(entitled[path])]
    lacking = sum(max(0, entitled[leaf] - used[leaf]) for leaf in leaves if taken.get(leaf, 0) <= 0)
    shares = FairShares(root, {"gpu": total}, usage={leaf: {"gpu": amount} for leaf, amount in used.items()})
    found = beyond_entitlement(shares, {leaf: {"gpu": amount} for leaf, amount in taken.items()})
    assert (found is not None) == bool(over_limit or (over and total - sum(used.values()) < lacking))
