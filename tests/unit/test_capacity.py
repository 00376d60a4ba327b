"""Whether claims fit: the rule, and the same rule formulated differently."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.inventory import DoesNotFit, Inventory, StockName, Supply, check_fit

STOCKS: list[StockName] = [(provider, name) for provider in "AB" for name in ("VCPU", "DISK_GB")]

inventories = st.builds(
    Inventory,
    total=st.integers(1, 20),
    reserved=st.integers(0, 5),
    min_unit=st.integers(1, 3),
    max_unit=st.integers(3, 12),
    step_size=st.integers(1, 3),
    allocation_ratio=st.sampled_from([0.5, 1.0, 1.5, 3.0]),
)
supplies = st.dictionaries(st.sampled_from(STOCKS), st.builds(Supply, inventories, used=st.integers(0, 30)))
portions = st.lists(st.tuples(st.sampled_from(STOCKS), st.integers(1, 12)), max_size=6)
freed = st.dictionaries(st.sampled_from(STOCKS), st.integers(0, 30))


def fits(
    wanted: list[tuple[StockName, int]], offered: dict[StockName, Supply], given_back: dict[StockName, int]
) -> bool:
    """Return whether claims fit, judged by the final sums."""
    sums: Counter[StockName] = Counter()
    for stock, amount in wanted:
        sums[stock] += amount
    for stock, amount in wanted:
        if stock not in offered:
            return False
        inventory = offered[stock].inventory
        if amount not in range(inventory.min_unit, inventory.max_unit + 1) or amount % inventory.step_size:
            return False
    for stock, amount in sums.items():
        before = offered[stock].used
        after = before - given_back.get(stock, 0) + amount
        inventory = offered[stock].inventory
        room = (inventory.total - inventory.reserved) * inventory.allocation_ratio
        if after > room and after > before:
            return False
    return True


@given(portions, supplies, freed)
def test_claims_are_refused_exactly_where_their_sums_do_not_fit(
    wanted: list[tuple[StockName, int]], offered: dict[StockName, Supply], given_back: dict[StockName, int]
) -> None:
    given_back = {stock: min(amount, offered[stock].used) for stock, amount in given_back.items() if stock in offered}
    try:
        check_fit(wanted, offered, given_back)
    except DoesNotFit:
        assert not fits(wanted, offered, given_back)
    else:
        assert fits(wanted, offered, given_back)


@pytest.mark.parametrize(
    ("supply", "amount", "sentence"),
    [
        (None, 1, "Inventory for 'VCPU' on resource provider 'A' invalid."),
        (Supply(Inventory(8, max_unit=4), 0), 5, "The requested amount would violate inventory constraints."),
        (Supply(Inventory(8), 4), 5, "The requested amount would exceed the capacity."),
    ],
)
def test_the_refusal_names_provider_class_and_reason(supply: Supply | None, amount: int, sentence: str) -> None:
    stock = ("A", "VCPU")
    with pytest.raises(DoesNotFit, match=r"Unable to allocate inventory: .*'VCPU' on resource provider 'A'") as refused:
        check_fit([(stock, amount)], {} if supply is None else {stock: supply}, {})
    assert refused.value.message.endswith(sentence)
