"""Whether trees have room for parts that may lie anywhere, compared with trying every assignment of providers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.budget import Budget
from placement.candidates.compose.device_parts import Part
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.rival_room import RivalPart, RivalRoom
from placement.candidates.compose.room_alone import RoomAlone, only_room_decides
from placement.domain.candidate_request import RequestGroup
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.compose.test_device_room import can_be_served, request_of, stocks, tree_of, wanted


@examples(150)
@given(wanted, st.lists(stocks, min_size=1, max_size=4), st.booleans())
def test_what_has_room_is_what_sharing_out_finds(
    groups: list[tuple[str, int, int, bool]], clouds: list[list[tuple[int, int, bool]]], isolate: bool
) -> None:
    """Several trees are asked about, because one may be taken for another with as much."""
    request = request_of(groups, isolate=isolate)
    plan = plan_for(request.plain)
    assert only_room_decides(request, plan)
    parts = [Part(slot, one, None, ()) for slot, one in zip(plan.slots, request.groups, strict=True)]
    room = RoomAlone(parts, plan, isolate=isolate)
    for providers in clouds:
        tree = tree_of(plan, providers)
        asked = [(tree.options[part.slot.demand], part.group.count) for part in parts]
        found = room.serves(tree, asked, Budget(1_000_000))
        assert found == can_be_served(request, plan, tree)


def test_without_steps_only_what_is_known_is_told() -> None:
    request = request_of([("PGPU", 2, 1, False), ("PGPU", 2, 1, False)], isolate=False)
    plan = plan_for(request.plain)
    parts = [Part(slot, one, None, ()) for slot, one in zip(plan.slots, request.groups, strict=True)]
    room = RoomAlone(parts, plan, isolate=False)
    four, three = [tree_of(plan, [(left, 0, False)]) for left in (4, 3)]
    asked = [(tree_of(plan, [(5, 0, False)]).options[0], 1)] * 2
    assert room.serves(four, asked, Budget(1000)) is True
    # Five are as good as four where two are asked for twice.
    five = tree_of(plan, [(5, 0, False)])
    assert [room.serves(tree, asked, Budget(0)) for tree in (five, three)] == [True, None]


@examples(150)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans()), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=5),
    st.booleans(),
)
def test_what_has_room_on_cards_is_what_sharing_out_finds(
    groups: list[tuple[int, int, bool]], providers: list[tuple[int, int]], isolate: bool
) -> None:
    """Of groups the amount, the count, and whether they are to be of different cards; of providers the card."""
    plain = request_of([("PGPU", amount, count, False) for amount, count, _by_card in groups], isolate=isolate)
    devices = [replace(one, device=one.group) if of[2] else one for one, of in zip(plain.groups, groups, strict=True)]
    request = replace(plain, groups=tuple(devices))
    plan = plan_for(request.plain)
    tree = tree_of(plan, [(left, 0, False) for left, _card in providers])
    parts = [Part(slot, one, None, ()) for slot, one in zip(plan.slots, request.groups, strict=True)]
    asked = [(tree.options[part.slot.demand], part.group.count) for part in parts]
    cards = [card for _left, card in providers]
    found = RoomAlone(parts, plan, isolate=isolate).serves(tree, asked, Budget(1_000_000), card_of=cards.__getitem__)
    by_card = {one.suffix for one in request.groups if one.device is not None}
    assert found == can_be_served(request, plan, tree, cards=dict.fromkeys(by_card, cards))


def test_functions_of_one_card_are_not_taken_for_those_of_several() -> None:
    """Several of a group are of different cards: numbers alone tell it only where each is of a card of its own."""
    group = PlannerGroup(
        group=RequestGroup(suffix="_V", resources={"VF": 1}), count=2, device=RequestGroup(suffix="_V")
    )
    request = PlannerRequest(groups=(group,))
    composer = DeviceComposer(request, plan_for(request.plain), Levels((), ()), locks={})
    for cards, serves in (((10, 10), False), ((10, 20), True)):
        parents = {1: None, 10: 1, 20: 1, 11: cards[0], 12: cards[1]}
        details = PlannerTree(1, parents, {id_: str(id_) for id_ in parents}, positions=dict.fromkeys(parents, ()))
        assert composer.serves(Tree(1, [[11, 12]]), details, Budget(1000)) is serves


@pytest.mark.parametrize(
    ("parts", "rooms"),
    [
        pytest.param([(1, 3, 0b1, True)], [[(0b1, 9), (0b1, 9)], [(0b1, 9)]], id="three different cards of two"),
        pytest.param([(4, 2, 0b1, False)], [[(0b1, 9)], [(0b1, 3)]], id="room for one only"),
        pytest.param(
            [(3, 1, 0b01, False), (3, 1, 0b10, False)], [[(0b11, 5)], [(0b00, 9)]], id="too little where both must go"
        ),
    ],
)
def test_plain_lack_of_room_is_told_without_a_search(
    parts: list[tuple[int, int, int, bool]], rooms: list[list[tuple[int, int]]]
) -> None:
    """Of parts the amount, how many providers it wants, its bit, and whether these are to be on different cards."""
    rivals = [
        RivalPart(number=bit.bit_length() - 1, wanted=wanted, amounts=(amount,), apart=False, by_card=by_card)
        for amount, wanted, bit, by_card in parts
    ]
    budget = Budget(1)
    on_cards = tuple([tuple([(of, (left,)) for of, left in card]) for card in rooms])
    assert RivalRoom(rivals, ["VF"]).suffices(on_cards, budget) is False
    assert budget.left == 1
