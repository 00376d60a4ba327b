"""Whether trees have room for parts that may be anywhere, beside trying every way to share the providers out."""

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.budget import Budget
from placement.candidates.compose.device_parts import Part
from placement.candidates.compose.room_alone import RoomAlone, only_room_decides
from placement.domain.search_plan import plan_for
from tests.examples import examples
from tests.unit.candidates.compose.test_device_room import can_be_served, request_of, stocks, tree_of, wanted


@examples(150)
@given(wanted, st.lists(stocks, min_size=1, max_size=4), st.booleans())
def test_what_has_room_is_what_sharing_out_finds(
    groups: list[tuple[str, int, int, bool]], clouds: list[list[tuple[int, int, bool]]], isolate: bool
) -> None:
    """Several trees are asked about, for one may be taken for another that has as much."""
    request = request_of(groups, isolate=isolate)
    plan = plan_for(request.plain)
    assert only_room_decides(request, plan)
    parts = [Part(slot, one, None, ()) for slot, one in zip(plan.slots, request.groups, strict=True)]
    room = RoomAlone(parts, plan, isolate=isolate)
    for providers in clouds:
        tree = tree_of(plan, providers)
        options = [tree.options[part.slot.demand] for part in parts]
        found = room.serves(tree, options, [one.count for one in request.groups], Budget(1_000_000))
        assert found == can_be_served(request, plan, tree)


def test_without_steps_only_what_is_known_is_told() -> None:
    request = request_of([("PGPU", 2, 1, False), ("PGPU", 2, 1, False)], isolate=False)
    plan = plan_for(request.plain)
    parts = [Part(slot, one, None, ()) for slot, one in zip(plan.slots, request.groups, strict=True)]
    room = RoomAlone(parts, plan, isolate=False)
    four, three = [tree_of(plan, [(left, 0, False)]) for left in (4, 3)]
    options = [tree_of(plan, [(5, 0, False)]).options[0]] * 2
    assert room.serves(four, options, [1, 1], Budget(1000)) is True
    # Five are no better than four, where two are asked for twice.
    five = tree_of(plan, [(5, 0, False)])
    assert [room.serves(tree, options, [1, 1], Budget(0)) for tree in (five, three)] == [True, None]
