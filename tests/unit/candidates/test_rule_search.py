"""The trees with a candidate under some of a request's rules, compared with trying every assignment of providers."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.budget import Budget
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.free_places import PlacesInUse
from placement.candidates.explain.rule_search import RuleSearch, SearchedHosts
from placement.candidates.explain.rules import rules_of, with_rules
from placement.candidates.host_kinds import HostKinds, RoomKinds
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest, Within
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.compose.test_device_room import can_be_served, request_of, stocks, tree_of, wanted

LEVELS = Levels(("numa",), ("HW_NUMA_ROOT",))


@examples(100)
@given(wanted, st.lists(stocks, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_as_many_trees_serve_each_part_of_a_request_as_sharing_out_finds(
    groups: list[tuple[str, int, int, bool]],
    clouds: list[list[tuple[int, int, bool]]],
    isolate: bool,
    all_first: bool,
) -> None:
    request = request_of(groups, isolate=isolate)
    plan = plan_for(request.plain)
    trees = [replace(tree_of(plan, providers), root=-1 - root) for root, providers in enumerate(clouds)]
    kind = HostKinds(plan, lock_classes=(), counts_use=False).kind
    search = _search(SearchedHosts(trees, RoomKinds(plan).kind, kind, _flat_hosts, _never), request)
    rules = rules_of(request)
    asked = [with_rules(request, rules[:kept]) for kept in range(len(rules) + 1)]
    for one in reversed(asked) if all_first else asked:
        serving = {tree.root for tree in trees if can_be_served(one, plan, tree)}
        assert search.serving(one) == (serving, set())


def test_details_are_read_only_of_trees_that_may_serve() -> None:
    plain = request_of([("PGPU", 1, 2, False)], isolate=False)
    request = replace(plain, within=(Within(groups=("_0",), level="numa", required=True),))
    plan = plan_for(request.plain)
    # Two GPUs in one place, two in two places, one alone.
    places = {1: (10, 10), 2: (20, 21), 3: (30,)}
    trees = [Tree(root, [[100 * root + n for n, _place in enumerate(of)]]) for root, of in places.items()]
    read: list[int] = []

    def in_detail(some: list[Tree]) -> list[PlannerTree]:
        read.extend([tree.root for tree in some])
        return [_host(tree, places[tree.root]) for tree in some]

    kind = HostKinds(plan, lock_classes=(), counts_use=False).kind
    search = _search(SearchedHosts(trees, RoomKinds(plan).kind, kind, in_detail, _never), request)
    assert search.serving(request).trees == {1}
    assert read == [1, 2]  # The third one has too few GPUs.


def test_what_was_noted_of_a_request_is_not_asked_again() -> None:
    request = request_of([("PGPU", 1, 2, False), ("VCPU", 1, 1, False)], isolate=False)
    plan = plan_for(request.plain)
    trees = [replace(tree_of(plan, [(5, 5, False)] * 3), root=root) for root in (1, 2, 3)]
    room_of: list[int] = []

    def kind(tree: Tree) -> Hashable:
        room_of.append(tree.root)
        return tree.root

    search = _search(SearchedHosts(trees, kind, lambda tree, _host: tree.root, _flat_hosts, _never), request)
    bare = with_rules(request, ())
    search.note(bare, {1: True, 2: False})
    assert search.serving(request).trees == {1, 3}
    assert search.serving(bare).trees == {1, 3}
    # Whoever does not serve the request without its rules does not serve it with them.
    assert room_of == [1, 3]


def test_trees_that_serve_as_much_are_not_asked_for_room_again() -> None:
    plain = request_of([("PGPU", 1, 2, False)], isolate=False)
    request = replace(plain, within=(Within(groups=("_0",), level="numa", required=True),))
    plan = plan_for(request.plain)
    # Two GPUs in one place, two in two places, one alone.
    places = {1: (10, 10), 2: (20, 21), 3: (30,)}
    trees = [Tree(root, [[100 * root + n for n, _place in enumerate(of)]]) for root, of in places.items()]
    asked: list[int] = []

    class Asked(DeviceComposer):
        def lacks_room(self, tree: Tree, *, members: int = 1) -> bool:
            asked.append(tree.root)
            return super().lacks_room(tree, members=members)

    def in_detail(some: list[Tree]) -> list[PlannerTree]:
        return [_host(tree, places[tree.root]) for tree in some]

    kind = HostKinds(plan, lock_classes=(), counts_use=False).kind
    hosts = SearchedHosts(trees, lambda tree: tree.root, kind, in_detail, _never)
    search = RuleSearch(hosts, lambda one: Asked(one, plan, LEVELS, locks={}), Budget(1_000_000))
    search.note(plain, {1: True})
    assert search.serving(request).trees == {1}
    assert asked == [2]  # The third one has too few GPUs, whatever their room.


def _search(hosts: SearchedHosts, request: PlannerRequest) -> RuleSearch:
    plan = plan_for(request.plain)
    return RuleSearch(hosts, lambda one: DeviceComposer(one, plan, LEVELS, locks={}), Budget(1_000_000))


def _host(tree: Tree, places: tuple[int, ...]) -> PlannerTree:
    inside = dict(zip(tree.options[0], places, strict=True))
    parents = {tree.root: None, **dict.fromkeys(places, tree.root), **inside}
    positions = {one: (one if one in places else inside.get(one),) for one in parents}
    return PlannerTree(tree.root, parents, {one: str(one) for one in parents}, positions=positions)


def _flat_hosts(trees: Sequence[Tree]) -> list[PlannerTree]:
    """Return hosts in which no place matters."""
    hosts = []
    for tree in trees:
        parents = {tree.root: None} | {one: tree.root for row in tree.options for one in row}
        hosts.append(
            PlannerTree(
                tree.root, parents, {one: str(one) for one in parents}, positions=dict.fromkeys(parents, (None,))
            )
        )
    return hosts


def _never(*_asked: object) -> Hashable | PlacesInUse:
    raise AssertionError("This was not to be read.")
