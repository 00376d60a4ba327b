"""Small random clouds and requests, as rows and as facts, and a definition of "has a candidate" that tries everything.

The definition can leave out one condition, as explanations do; it knows nothing of how they are worked out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random

from hypothesis import strategies as st
from sqlalchemy import Connection, text

from placement.candidates.explain.conditions import Condition, Sort, any_of_value
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.facts import Facts
from placement.domain.search_plan import Slot, plan_for
from tests.clouds import SHARES

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TRAITS = ("HW_CPU_X86_AVX2", "HW_NUMA_ROOT", "STORAGE_DISK_SSD")
AGGREGATES = ("aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002")
UNKNOWN_TREE = "ffffffff-0000-4000-8000-000000000000"
SUFFIXES = ("_A", "_B", "_C")
TREES, MOST_PROVIDERS = 3, 8


@dataclass(frozen=True)
class Inventory:
    total: int
    used: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    reserved: int = 0
    allocation_ratio: float = 1.0

    @property
    def left(self) -> float:
        return (self.total - self.reserved) * self.allocation_ratio - self.used


@dataclass(frozen=True)
class Node:
    """A provider; ``parent`` and ``root`` are ids."""

    id: int
    parent: int | None
    root: int
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def uuid(self) -> str:
        return uuid_of(self.id)


Cloud = dict[int, Node]


def uuid_of(id_: int) -> str:
    return f"00000000-0000-4000-8000-{id_:012}"


def random_inventory(chance: Random) -> Inventory:
    return Inventory(
        total=chance.randint(2, 6),
        used=chance.choice((0, 0, 0, 1, 2)),
        min_unit=chance.choice((1, 1, 1, 1, 2)),
        max_unit=chance.choice((2**31 - 1, 2**31 - 1, 2**31 - 1, 4, 2)),
        step_size=chance.choice((1, 1, 1, 1, 2)),
        reserved=chance.choice((0, 0, 1)),
        allocation_ratio=chance.choice((1.0, 1.0, 1.5)),
    )


def some(chance: Random, values: Sequence[str], most: int) -> frozenset[str]:
    return frozenset(chance.sample(values, chance.randint(0, most)))


def random_cloud(chance: Random) -> Cloud:
    cloud: Cloud = {}
    for id_ in range(1, chance.randint(2, MOST_PROVIDERS) + 1):
        trees = sum(node.parent is None for node in cloud.values())
        parent = None if not cloud or (trees < TREES and chance.random() < 0.4) else chance.choice(sorted(cloud))
        traits = some(chance, TRAITS, 2) | (frozenset({SHARES}) if chance.random() < 0.12 else frozenset())
        cloud[id_] = Node(
            id_,
            parent,
            id_ if parent is None else cloud[parent].root,
            {name: random_inventory(chance) for name in CLASSES if chance.random() < 0.7},
            traits,
            some(chance, AGGREGATES, 2),
        )
    return cloud


def random_sets(chance: Random, values: Sequence[str]) -> tuple[frozenset[str], ...]:
    found = (frozenset(chance.sample(values, chance.choice((1, 1, 2)))) for _ in range(chance.choice((1, 1, 2))))
    return tuple(dict.fromkeys(found))


def random_group(chance: Random, suffix: str, *, has_resources: bool = True) -> RequestGroup:
    """A group with one or two conditions: one with all of them has hardly ever a near miss."""
    names = chance.sample(CLASSES, chance.choice((1, 1, 2)))
    conditions = {
        "required": lambda: random_sets(chance, TRAITS),
        "forbidden": lambda: frozenset(chance.sample(TRAITS, chance.choice((1, 1, 2)))),
        "member_of": lambda: random_sets(chance, AGGREGATES),
        "forbidden_aggregates": lambda: frozenset(chance.sample(AGGREGATES, 1)),
        "in_tree": lambda: chance.choice((uuid_of(1), uuid_of(2), uuid_of(3), UNKNOWN_TREE)),
    }
    chosen = chance.sample(sorted(conditions), chance.choice((0, 0, 1, 1, 2)))
    return RequestGroup(
        suffix=suffix,
        resources={name: chance.randint(1, 4) for name in names} if has_resources else {},
        **{name: conditions[name]() for name in chosen},
    )


def random_request(chance: Random) -> CandidateRequest:
    suffixes = chance.sample(SUFFIXES, chance.randint(0, 3))
    found = [random_group(chance, suffix) for suffix in suffixes]
    if suffixes and chance.random() < 0.3:
        found[0] = replace(found[-1], suffix=found[0].suffix)
    if not found or chance.random() < 0.5:
        found.append(random_group(chance, ""))
    tied = []
    if suffixes and chance.random() < 0.4:
        tied = [
            frozenset(chance.sample(suffixes, chance.randint(1, len(suffixes)))) for _ in range(chance.randint(1, 2))
        ]
    if suffixes and chance.random() < 0.15:
        found.append(random_group(chance, "_R", has_resources=False))
        tied.append(frozenset({"_R", suffixes[0]}))
    return CandidateRequest(
        groups=tuple(found),
        isolate=chance.random() < 0.5,
        same_subtree=tuple(dict.fromkeys(tied)),
        root_required=some(chance, TRAITS, 1) if chance.random() < 0.2 else frozenset(),
        root_forbidden=some(chance, TRAITS, 1) if chance.random() < 0.2 else frozenset(),
        combines_nested=chance.random() < 0.85,
    )


def random_situation(seed: int) -> tuple[CandidateRequest, Cloud]:
    chance = Random(seed)
    return random_request(chance), random_cloud(chance)


situations = st.integers(0, 2**32).map(random_situation)
"""A request and a cloud; hypothesis only draws the seed: it is slow at large structures."""


def facts_of(cloud: Cloud) -> Facts:
    """Return the facts of a cloud, as the store would read them."""
    stocks = defaultdict(list)
    owners, members = defaultdict(set), defaultdict(set)
    for node in cloud.values():
        for name, stock in node.inventories.items():
            units = (stock.min_unit, stock.max_unit, stock.step_size)
            stocks[name].append((CLASSES.index(name), node.id, node.root, stock.left, *units))
        for trait in node.traits:
            owners[trait].add(node.id)
        for aggregate in node.aggregates:
            members[aggregate].add(node.id)
    return Facts(
        stocks=dict(stocks),
        owners=dict(owners),
        members=dict(members),
        home={node.id: node.root for node in cloud.values()},
        parents={node.id: node.parent for node in cloud.values()},
        roots={node.uuid: node.root for node in cloud.values()},
        shares=shares_of(cloud),
    )


def shares_of(cloud: Cloud) -> dict[int, list[int]]:
    found = {}
    for sharing in cloud.values():
        trees = {node.root for node in cloud.values() if node.aggregates & sharing.aggregates}
        if SHARES in sharing.traits and trees:
            found[sharing.id] = sorted(trees)
    return found


def write(connection: Connection, cloud: Cloud) -> None:
    """Put a cloud into the tables in the place of whatever was there."""
    for table in ("allocations", "inventories", "resource_provider_traits", "resource_provider_aggregates"):
        connection.execute(text(f"DELETE FROM {table}"))
    connection.execute(text("UPDATE resource_providers SET root_provider_id = NULL, parent_provider_id = NULL"))
    connection.execute(text("DELETE FROM resource_providers"))
    for table in ("provider_usages", "placement_aggregates"):
        connection.execute(text(f"DELETE FROM {table}"))
    aggregates = [{"id": number, "uuid": uuid} for number, uuid in enumerate(AGGREGATES, start=1)]
    connection.execute(text("INSERT INTO placement_aggregates (id, uuid) VALUES (:id, :uuid)"), aggregates)
    for node in cloud.values():
        for statement, values in _rows(node):
            connection.execute(text(statement), values)


def _rows(node: Node) -> Iterator[tuple[str, dict[str, object]]]:
    yield (
        (
            "INSERT INTO resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id)"
            " VALUES (:id, :uuid, :name, 0, :parent, :root)"
        ),
        {"id": node.id, "uuid": node.uuid, "name": f"node{node.id}", "parent": node.parent, "root": node.root},
    )
    for trait in node.traits:
        yield (
            (
                "INSERT INTO resource_provider_traits (resource_provider_id, trait_id)"
                " SELECT :id, id FROM traits WHERE name = :name"
            ),
            {"id": node.id, "name": trait},
        )
    for aggregate in node.aggregates:
        number = AGGREGATES.index(aggregate) + 1
        yield (
            "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) VALUES (:id, :number)",
            {"id": node.id, "number": number},
        )
    for name, stock in node.inventories.items():
        of_class = {"id": node.id, "class": name}
        yield (
            (
                "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,"
                " step_size, allocation_ratio) SELECT :id, id, :total, :reserved, :min_unit, :max_unit, :step_size,"
                " :allocation_ratio FROM resource_classes WHERE name = :class"
            ),
            {**vars(stock), **of_class},
        )
        if stock.used:
            yield (
                (
                    "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used)"
                    " SELECT :id, id, 'consumer', :used FROM resource_classes WHERE name = :class"
                ),
                {"used": stock.used, **of_class},
            )


class Definition:
    """What a request asks of a choice of providers, straight from the API's description; a condition may be left out.

    Args:
        request: the request.
        cloud: the cloud.
        without: the condition that is left out.
    """

    def __init__(self, request: CandidateRequest, cloud: Cloud, without: Condition | None = None) -> None:
        self.request = request
        self.cloud = cloud
        self.without = without
        self.slots = plan_for(request).slots
        self.groups = {group.suffix: group for group in request.groups}
        self.shares = shares_of(cloud)

    def trees(self) -> set[int]:
        """Return the roots of the trees with a candidate."""
        return {node.root for node in self.cloud.values() if self._has_candidate(node.root)}

    def is_out(self, sort: Sort, suffix: str | None, value: str) -> bool:
        condition = self.without
        if condition is None or condition.sort != sort or condition.value != value:
            return False
        return suffix is None or suffix in condition.groups

    def _has_candidate(self, root: int) -> bool:
        if not self._root_is_right(root):
            return False
        options = [self._options(slot, root) for slot in self.slots]
        return any(self._is_candidate(root, choice) for choice in product(*options))

    def _root_is_right(self, root: int) -> bool:
        node, request = self.cloud[root], self.request
        if any(t not in node.traits and not self.is_out(Sort.ROOT_REQUIRED, None, t) for t in request.root_required):
            return False
        if any(
            t in node.traits and not self.is_out(Sort.ROOT_FORBIDDEN, None, f"!{t}") for t in request.root_forbidden
        ):
            return False
        loose = self.groups.get("", RequestGroup())
        if self.is_out(Sort.FORBIDDEN_AGGREGATES, "", _forbidden(loose)):
            return True
        return not node.aggregates & loose.forbidden_aggregates

    def _options(self, slot: Slot, root: int) -> list[int]:
        found = [
            node.id for node in self.cloud.values() if node.root == root and self._serves(slot, node, shared=False)
        ]
        for sharing, trees in self.shares.items():
            if root in trees and sharing not in found and self._serves(slot, self.cloud[sharing], shared=True):
                found.append(sharing)
        return found

    def _serves(self, slot: Slot, node: Node, *, shared: bool) -> bool:
        group = self.groups[slot.suffix]
        if not (group.resources or group.required or group.member_of):
            return False
        return self._has_room(slot, node) and self._is_kind(slot, node) and self._is_placed(slot, node, shared=shared)

    def _has_room(self, slot: Slot, node: Node) -> bool:
        for name, amount in slot.resources:
            stock = node.inventories.get(name)
            if stock is None:
                return False
            rules = {
                Sort.CAPACITY: amount <= stock.left,
                Sort.MIN_UNIT: amount >= stock.min_unit,
                Sort.MAX_UNIT: amount <= stock.max_unit,
                Sort.STEP_SIZE: amount % stock.step_size == 0,
            }
            if not all(holds or self.is_out(sort, slot.suffix, f"{name}:{amount}") for sort, holds in rules.items()):
                return False
        return True

    def _is_kind(self, slot: Slot, node: Node) -> bool:
        group = self.groups[slot.suffix]
        if any(t in node.traits and not self.is_out(Sort.FORBIDDEN, slot.suffix, f"!{t}") for t in group.forbidden):
            return False
        return not slot.is_granular or all(
            any_of & node.traits or self.is_out(Sort.REQUIRED, slot.suffix, any_of_value(any_of))
            for any_of in group.required
        )

    def _is_placed(self, slot: Slot, node: Node, *, shared: bool) -> bool:
        group = self.groups[slot.suffix]
        member_of = node.aggregates
        if not slot.is_granular and not shared:
            member_of = member_of | self.cloud[node.root].aggregates
        for any_of in group.member_of:
            if not any_of & member_of and not self.is_out(Sort.MEMBER_OF, slot.suffix, any_of_value(any_of)):
                return False
        forbidden = node.aggregates & group.forbidden_aggregates
        if forbidden and not self.is_out(Sort.FORBIDDEN_AGGREGATES, slot.suffix, _forbidden(group)):
            return False
        if group.in_tree is None:
            return True
        if shared and not slot.is_granular:
            return self.is_out(Sort.IN_TREE, slot.suffix, group.in_tree)
        tree = next((other.root for other in self.cloud.values() if other.uuid == group.in_tree), None)
        right = node.root == tree if group.resources else tree is not None
        return right or self.is_out(Sort.IN_TREE, slot.suffix, group.in_tree)

    def _is_candidate(self, root: int, choice: tuple[int, ...]) -> bool:
        placed = list(zip(self.slots, choice, strict=True))
        return (
            self._is_apart(placed)
            and self._fits_together(placed)
            and self._has_heads(placed)
            and self._has_traits(placed, root)
            and (self._combines() or self._is_one_of_each_tree(choice))
        )

    def _is_apart(self, placed) -> bool:
        granular = [provider for slot, provider in placed if slot.is_granular]
        left_out = self.without is not None and self.without.sort == Sort.GROUP_POLICY
        return not self.request.isolate or left_out or len(set(granular)) == len(granular)

    def _fits_together(self, placed) -> bool:
        taken = defaultdict(list)
        for slot, provider in placed:
            for name, amount in slot.resources:
                taken[provider, name].append(amount)
        for (provider, name), amounts in taken.items():
            if len(amounts) == 1 or self.is_out(Sort.COMBINED_CAPACITY, None, name):
                continue
            stock = self.cloud[provider].inventories[name]
            # Where amounts add up, a condition on one of them is one on their sum.
            out = self.without.sort if self.without and self.without.resource_class == name else None
            room = [stock.left] * (out != Sort.CAPACITY) + [stock.max_unit] * (out != Sort.MAX_UNIT)
            if sum(amounts) > min(room):
                return False
        return True

    def _has_heads(self, placed) -> bool:
        for suffixes in self.request.same_subtree:
            if self.is_out(Sort.SAME_SUBTREE, None, ",".join(sorted(suffixes))):
                continue
            members = {provider for slot, provider in placed if slot.suffix in suffixes}
            if not any(all(head in self._ancestry(other) for other in members) for head in members):
                return False
        return True

    def _ancestry(self, provider: int) -> set[int]:
        found, here = set(), provider
        while here is not None:
            found.add(here)
            here = self.cloud[here].parent
        return found

    def _has_traits(self, placed, root: int) -> bool:
        serving = {provider for slot, provider in placed if not slot.is_granular}
        if self.without is not None and self.without.sort == Sort.TRAIT_PLACEMENT:
            sharing = {provider for provider, trees in self.shares.items() if root in trees}
            serving |= {node.id for node in self.cloud.values() if node.root == root} | sharing
        traits = frozenset().union(*(self.cloud[provider].traits for provider in serving))
        required = self.groups.get("", RequestGroup()).required
        return all(any_of & traits or self.is_out(Sort.REQUIRED, "", any_of_value(any_of)) for any_of in required)

    def _combines(self) -> bool:
        left_out = self.without is not None and self.without.sort == Sort.ONE_PROVIDER_PER_TREE
        return self.request.combines_nested or left_out

    def _is_one_of_each_tree(self, choice: tuple[int, ...]) -> bool:
        homes = defaultdict(set)
        for provider in choice:
            homes[self.cloud[provider].root].add(provider)
        return all(len(found) == 1 for found in homes.values())


def _forbidden(group: RequestGroup) -> str:
    return any_of_value(group.forbidden_aggregates, forbidden=True) if group.forbidden_aggregates else ""


def without_part(request: CandidateRequest, condition: Condition) -> CandidateRequest:
    """Return a request without the class or the groups that a condition names."""
    if condition.sort == Sort.GROUP:
        gone = set(condition.groups)
        kept = [group for group in request.groups if group.suffix not in gone]
        tied = [suffixes - gone for suffixes in request.same_subtree]
        return replace(request, groups=tuple(kept), same_subtree=tuple(suffixes for suffixes in tied if suffixes))
    groups = [
        replace(group, resources={name: group.resources[name] for name in group.resources if name != condition.value})
        if group.suffix in condition.groups
        else group
        for group in request.groups
    ]
    return replace(request, groups=tuple(groups))
