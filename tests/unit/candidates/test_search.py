"""The search inside one tree, compared with trying every combination."""

from collections import defaultdict
from itertools import islice, product

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.candidates.matching import can_match
from placement.candidates.search import Budget, Composer
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import Plan, plan_for
from placement.domain.tree import Tree

CLASSES = ("VCPU", "PGPU")
TRAITS = ("A", "B")


@st.composite
def requests(draw) -> CandidateRequest:
    """A small request; at least one group asks for resources."""
    suffixes = draw(st.lists(st.sampled_from(["_1", "_2", "_3", "_4"]), unique=True, max_size=4))
    amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2), min_size=1)
    groups = [RequestGroup(suffix=suffix, resources=draw(amounts)) for suffix in suffixes]
    if not groups or draw(st.booleans()):
        wanted = draw(st.lists(st.sampled_from(TRAITS), unique=True))
        groups.append(RequestGroup(resources=draw(amounts), required=tuple(frozenset({name}) for name in wanted)))
    same_subtree = []
    if len(suffixes) > 1:
        same_subtree = draw(st.lists(st.sets(st.sampled_from(suffixes), min_size=1).map(frozenset), max_size=2))
    return CandidateRequest(
        groups=tuple(groups),
        isolate=draw(st.booleans()),
        same_subtree=tuple(same_subtree),
        combines_nested=draw(st.integers(0, 4)) > 0,
    )


@st.composite
def searches(draw) -> tuple[Plan, Tree]:
    """A plan and a tree of up to six providers, one of them at home elsewhere."""
    plan = plan_for(draw(requests()))
    providers = list(range(1, draw(st.integers(1, 6)) + 1))
    parents: dict[int, int | None] = {1: None}
    for provider in providers[1:]:
        parents[provider] = draw(st.sampled_from(providers[: provider - 1]))
    stranger = 9
    parents[stranger] = None
    everyone = [*providers, stranger]
    fits = st.lists(st.sampled_from(everyone), unique=True, min_size=1).map(sorted)
    options = [draw(fits) for _ in plan.kinds]
    room = {(provider, name): float(draw(st.integers(2, 4))) for provider in everyone for name in plan.contended}
    met = {provider: draw(st.integers(0, 2 ** len(plan.trait_sets) - 1)) for provider in everyone}
    tree = Tree(1, options, room=room, met=met, parents=parents, home={stranger: stranger})
    return plan, tree


def brute_force(plan: Plan, tree: Tree) -> set[tuple[int, ...]]:
    """Return every choice that satisfies the definitions, by looking at all of them."""
    rows = [tree.options[slot.kind] for slot in plan.slots]
    return {choice for choice in product(*rows) if is_candidate(plan, tree, choice)}


def is_candidate(plan: Plan, tree: Tree, choice: tuple[int, ...]) -> bool:
    placed = list(zip(plan.slots, choice, strict=True))
    granular = [provider for slot, provider in placed if slot.is_granular]
    if plan.request.isolate and len(set(granular)) < len(granular):
        return False
    taken: dict[tuple[int, str], int] = defaultdict(int)
    for slot, provider in placed:
        for name, amount in slot.resources:
            taken[provider, name] += amount
    if any(amount > tree.room[key] for key, amount in taken.items() if key[1] in plan.contended):
        return False
    for suffixes in plan.request.same_subtree:
        members = {provider for slot, provider in placed if slot.suffix in suffixes}
        if not any(all(head in tree.ancestry(other) for other in members) for head in members):
            return False
    together = 0
    for slot, provider in placed:
        if not slot.is_granular:
            together |= tree.met[provider]
    if together != 2 ** len(plan.trait_sets) - 1 and any(not slot.is_granular for slot in plan.slots):
        return False
    if not plan.request.combines_nested:
        homes = defaultdict(set)
        for provider in choice:
            homes[tree.home.get(provider, tree.root)].add(provider)
        return all(len(found) == 1 for found in homes.values())
    return True


@settings(max_examples=600, deadline=None)
@given(searches())
def test_the_search_finds_exactly_what_trying_everything_finds(search):
    """No candidate is missed, none is wrong, none comes twice."""
    plan, tree = search
    found = list(Composer(plan, Budget()).choices(tree))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(plan, tree)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 4), unique=True), max_size=5),
    st.dictionaries(st.integers(1, 4), st.integers(0, 2)),
)
def test_matching_agrees_with_trying_everything(rows, places):
    def possible(choice):
        return all(choice.count(column) <= places.get(column, 1) for column in choice)

    expected = any(possible(choice) for choice in product(*rows))
    assert can_match(rows, lambda column: places.get(column, 1)) == expected


def devices(groups: int, count: int, *, isolate: bool = True) -> tuple[Plan, Tree]:
    """``groups`` groups of one unit each, ``count`` devices of one unit."""
    request = CandidateRequest(
        groups=tuple(RequestGroup(suffix=f"_{i}", resources={"PGPU": 1}) for i in range(groups)), isolate=isolate
    )
    plan = plan_for(request)
    providers = list(range(1, count + 1))
    return plan, Tree(1, [providers], room={(provider, "PGPU"): 1.0 for provider in providers})


def test_groups_alike_are_of_one_kind():
    plan, _tree = devices(16, 16)
    assert len(plan.kinds) == 1
    assert len(plan.slots) == 16


def test_sixteen_groups_on_sixteen_devices_need_few_steps():
    """The reference would look at 16^16 combinations."""
    for isolate in (True, False):
        plan, tree = devices(16, 16, isolate=isolate)
        budget = Budget(per_tree=100_000)
        assert len(list(islice(Composer(plan, budget).choices(tree), 1000))) == 1000
        assert not budget.was_hit


def test_nine_groups_on_eight_devices_fail_at_once():
    for isolate in (True, False):
        plan, tree = devices(9, 8, isolate=isolate)
        budget = Budget(per_tree=0)
        assert list(Composer(plan, budget).choices(tree)) == []
        assert not budget.was_hit


def test_a_search_over_its_budget_says_so():
    plan, tree = devices(8, 8)
    budget = Budget(per_tree=100)
    found = list(Composer(plan, budget).choices(tree))
    assert found
    assert budget.was_hit


def test_a_budget_is_shared_by_all_trees_of_a_request():
    plan, tree = devices(3, 3)
    budget = Budget(per_request=40)
    complete = list(Composer(plan, budget).choices(tree))
    assert len(complete) == 6
    assert not budget.was_hit
    for _ in range(5):
        list(Composer(plan, budget).choices(tree))
    assert budget.was_hit
