"""Small random clouds of hosts with devices, and random planner requests for them."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

from placement.domain.planner_request import THE_DEVICE, Affinity, Exclusive, PlannerGroup, PlannerRequest, Within
from placement.domain.search_plan import RequestGroup
from placement.services.names import ensure_class, ensure_trait
from placement.store.connection.database import Database
from tests.clouds import SHARES
from tests.small_clouds import AGGREGATES, UNKNOWN_TREE, Cloud, Inventory, Node, random_sets, some, uuid_of

LEVELS = {"numa": "HW_NUMA_ROOT", "pcie": "CUSTOM_HW_PCIE_SWITCH"}
LOCK = "CUSTOM_PCIE_LOCK"
DEVICE_LOCK = "CUSTOM_DEVICE_LOCK"
LOCKS = {"pcie": LOCK, THE_DEVICE: DEVICE_LOCK}
TRAITS = ("CUSTOM_A", "CUSTOM_B")
SOCKET = "CUSTOM_SOCKET"
"""A level that is not in the file: some hosts have it outside their NUMA nodes."""
WHOLE_LOCK = 4


def make_names(database: Database) -> None:
    """Create the traits and classes in clouds and requests."""
    for name in (LEVELS["pcie"], SOCKET, *TRAITS):
        ensure_trait(database, name)
    for name in (LOCK, DEVICE_LOCK):
        ensure_class(database, name)


class Builder:
    """Adds providers to a cloud."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.cloud: Cloud = {}

    def add(
        self, parent: int | None, inventories: dict[str, Inventory], traits: frozenset[str], *, plain: bool = False
    ) -> int:
        """Add one provider; unless they are plain, some are in aggregates, and a few share."""
        chance, id_ = self.chance, len(self.cloud) + 1
        root = id_ if parent is None else self.cloud[parent].root
        if plain:
            self.cloud[id_] = Node(id_, parent, root, inventories, traits)
            return id_
        shares = frozenset({SHARES}) if chance.random() < 0.03 else frozenset[str]()
        aggregates = some(chance, AGGREGATES, 2) if parent is None or chance.random() < 0.5 else frozenset[str]()
        self.cloud[id_] = Node(id_, parent, root, inventories, traits | shares, aggregates)
        return id_

    def stock(self, most: int) -> Inventory:
        """Return an inventory: rarely with unit rules, rarely broken, sometimes in use."""
        chance = self.chance
        total = chance.randint(1, most)
        rules: dict[str, int] = chance.choice([{}] * 8 + [{"max_unit": 1}, {"step_size": 2}, {"min_unit": 2}])
        reserved = total if chance.random() < 0.08 else 0
        used = chance.randint(1, total) if chance.random() < 0.08 and not reserved else 0
        return Inventory(total, used=used, reserved=reserved, **rules)

    def lock(self, name: str, share: float) -> dict[str, Inventory]:
        """Return a lock, perhaps held entirely or in part, or none."""
        if self.chance.random() > share:
            return {}
        used = self.chance.choice((0,) * 8 + (1, WHOLE_LOCK))
        return {name: Inventory(WHOLE_LOCK, used=used)}

    def labels(self, most: int = 2) -> frozenset[str]:
        return some(self.chance, TRAITS, most)

    def host(self) -> None:
        chance = self.chance
        root = self.add(None, {"MEMORY_MB": self.stock(4)}, self.labels(1))
        sockets = [root]
        if chance.random() < 0.3:
            sockets = [self.add(root, {}, frozenset({SOCKET})) for _ in range(chance.choice((1, 2)))]
        for _ in range(chance.choice((1, 1, 2))):
            numa = frozenset({LEVELS["numa"]}) if chance.random() < 0.9 else frozenset[str]()
            node = self.add(chance.choice(sockets), {"VCPU": self.stock(4)}, numa)
            for _ in range(chance.choice((1, 2))):
                self.switch(node)

    def switch(self, node: int) -> None:
        chance = self.chance
        is_place = frozenset({LEVELS["pcie"]}) if chance.random() < 0.93 else frozenset[str]()
        switch = self.add(node, self.lock(LOCK, 0.6), is_place)
        for _ in range(chance.choice((0, 1, 1, 2, 2))):
            self.add(switch, {"PGPU": self.stock(2), **self.lock(DEVICE_LOCK, 0.2)}, self.labels())
        if chance.random() < 0.7:
            card = self.add(switch, self.lock(DEVICE_LOCK, 0.2), self.labels())
            for _ in range(chance.choice((1, 1, 2))):
                self.add(card, {"SRIOV_NET_VF": self.stock(3)}, self.labels(1))

    def pool(self) -> None:
        """Add a sharing tree; sometimes the sharing provider is below a place."""
        chance = self.chance
        parent = None
        if chance.random() < 0.4:
            parent = self.add(self.add(None, {}, frozenset()), {}, frozenset({chance.choice([*LEVELS.values()])}))
        names = chance.sample(("PGPU", "SRIOV_NET_VF", "MEMORY_MB", "VCPU"), chance.choice((1, 1, 2)))
        shared = self.add(parent, {name: self.stock(3) for name in names}, self.labels() | {SHARES})
        if chance.random() < 0.3:
            self.add(shared, {"SRIOV_NET_VF": self.stock(3)}, frozenset({SHARES}))


def random_cloud(chance: Random) -> Cloud:
    """Return two or three hosts, usually with a pool that they share."""
    builder = Builder(chance)
    for _ in range(chance.choice((2, 2, 3))):
        builder.host()
    for _ in range(chance.choice((0, 1, 1, 2))):
        builder.pool()
    return builder.cloud


def random_hosts(chance: Random, number: int, *, models: int | None = None, pools: int = 0) -> Cloud:
    """Return this many hosts that share only these pools and, perhaps, something of one of them.

    They are of the given number of models, or each of its own model.
    """
    builder = Builder(chance)
    drawn = [chance.random() for _ in range(models or 0)]
    for _ in range(number):
        builder.chance = Random(chance.choice(drawn)) if models else chance
        builder.host()
    builder.chance = chance
    for _ in range(pools):
        builder.pool()
    return builder.cloud


def _group(chance: Random, suffix: str, resources: dict[str, int]) -> RequestGroup:
    conditions = {
        "required": lambda: random_sets(chance, TRAITS),
        "forbidden": lambda: frozenset({chance.choice(TRAITS)}),
        "member_of": lambda: random_sets(chance, AGGREGATES),
        "forbidden_aggregates": lambda: frozenset({chance.choice(AGGREGATES)}),
        "in_tree": lambda: uuid_of(chance.randint(1, 20)) if chance.random() < 0.95 else UNKNOWN_TREE,
    }
    chosen = chance.sample(sorted(conditions), chance.choice((0, 0, 0, 0, 0, 0, 1, 1, 2)))
    found = {name: conditions[name]() for name in chosen}
    if any(any_of <= found.get("forbidden", frozenset()) for any_of in found.get("required", ())):
        del found["forbidden"]  # The request would be refused.
    return RequestGroup(suffix=suffix, resources=resources, **found)


def _granular(chance: Random, suffix: str) -> PlannerGroup:
    name, amount = chance.choice(
        (("PGPU", 1), ("PGPU", 1), ("PGPU", 2), ("SRIOV_NET_VF", 1), ("SRIOV_NET_VF", 2), ("VCPU", 1))
    )
    device = None
    if name == "SRIOV_NET_VF" and chance.random() < 0.5:
        device = RequestGroup(suffix=suffix, required=random_sets(chance, TRAITS) if chance.random() < 0.3 else ())
    everything = chance.random() < 0.15
    count = 1 if everything else chance.choice((1, 1, 1, 1, 2, 2, 3))
    return PlannerGroup(group=_group(chance, suffix, {name: amount}), count=count, everything=everything, device=device)


def _groups(chance: Random) -> list[PlannerGroup]:
    found = [_granular(chance, f"_{letter}") for letter in "ABC"[: chance.choice((1, 1, 2, 2, 2, 3))]]
    if chance.random() < 0.35:
        resources = chance.choice(({"VCPU": 1}, {"VCPU": 2, "MEMORY_MB": 1}, {"MEMORY_MB": 2}))
        found.append(PlannerGroup(group=_group(chance, "", resources)))
    return found


def _tied(chance: Random, groups: list[PlannerGroup], names: list[str]) -> list[frozenset[str]]:
    """Return sets for same_subtree; most have a group that only needs a common ancestor."""
    found = []
    for number in range(chance.choice((0, 0, 0, 1, 1, 2))):
        tied = frozenset(chance.sample(names, chance.randint(1, len(names))))
        if chance.random() < 0.7:
            above = f"_R{number}"
            wanted = (frozenset({chance.choice([*LEVELS.values(), *TRAITS])}),)
            groups.append(PlannerGroup(group=RequestGroup(suffix=above, required=wanted)))
            tied |= {above}
        found.append(tied)
    return found


def _affinity(chance: Random, groups: list[PlannerGroup], level: str) -> Affinity:
    names = [one.suffix for one in groups if one.group.resources and one.suffix]
    primary, *others = chance.sample(names, chance.randint(2, len(names)))
    for place, one in enumerate(groups):
        if one.suffix in others and chance.random() < 0.4:
            least = chance.choice((1, 1, 2))
            groups[place] = PlannerGroup(group=one.group, count=least, per_subtree=True, device=one.device)
    return Affinity(primary=primary, secondaries=tuple(others), level=level, required=chance.random() < 0.5)


def random_request(chance: Random) -> PlannerRequest:
    """Return a request of groups with conditions, counts and rules."""
    groups = _groups(chance)
    names = [one.suffix for one in groups if one.suffix]

    def level() -> str:
        return chance.choice((*LEVELS, *LEVELS, *LEVELS, *LEVELS.values(), SOCKET, SOCKET))

    def some_names() -> tuple[str, ...]:
        return tuple(chance.sample(names, chance.randint(1, len(names))))

    tied = _tied(chance, groups, names)
    affinity = [_affinity(chance, groups, level())] if len(names) > 1 and chance.random() < 0.4 else []
    within = [
        Within(groups=some_names(), level=level(), required=chance.random() < 0.5)
        for _ in range(chance.choice((0, 0, 0, 1, 2)))
    ]
    alone = (
        [Exclusive(groups=some_names(), level=chance.choice((level(), THE_DEVICE)))] if chance.random() < 0.2 else []
    )
    root_required = some(chance, TRAITS, 2) if chance.random() < 0.07 else frozenset()
    root_forbidden = some(chance, TRAITS, 1) if chance.random() < 0.07 else frozenset()
    return PlannerRequest(
        groups=tuple(groups),
        isolate=chance.random() < 0.5,
        same_subtree=tuple(tied),
        root_required=frozenset(filter(None, [root_required])),
        root_forbidden=root_forbidden - root_required,
        affinity=tuple(affinity),
        within=tuple(within),
        exclusive=tuple(alone),
        limit=1000,
    )


def body_of(request: PlannerRequest) -> dict[str, Any]:
    """Return a request in the form in which clients write it."""
    body: dict[str, Any] = {
        "groups": {one.suffix: _group_body(one) for one in request.groups},
        "group_policy": "isolate" if request.isolate else "none",
        "same_subtree": [sorted(suffixes) for suffixes in request.same_subtree],
        "root_required": _expression(request.root_required, request.root_forbidden),
        "affinity": [
            {"groups": [rule.primary, *rule.secondaries], "level": rule.level, "mode": _mode(rule)}
            for rule in request.affinity
        ],
        "within": [{"groups": [*rule.groups], "level": rule.level, "mode": _mode(rule)} for rule in request.within],
        "exclusive": [{"groups": [*rule.groups], "level": rule.level} for rule in request.exclusive],
        "limit": request.limit,
    }
    return {name: value for name, value in body.items() if value}


def _mode(rule: Affinity | Within) -> str:
    return "required" if rule.required else "preferred"


def _group_body(one: PlannerGroup) -> dict[str, Any]:
    group = one.group
    body: dict[str, Any] = {
        "resources": dict(group.resources),
        "required": _expression(group.required, group.forbidden),
        "member_of": _expression(group.member_of, group.forbidden_aggregates),
        "in_tree": group.in_tree,
    }
    if one.device is not None:
        body["vf_selector"], body["selector"] = body.pop("required"), _expression(one.device.required, frozenset())
    if one.everything:
        body["count"] = "all"
    elif one.per_subtree:
        body |= {"count": "per-subtree", "at_least": one.count}
    elif one.group.suffix:
        body["count"] = one.count
    return {name: value for name, value in body.items() if value or name == "vf_selector"}


def _expression(sets: Iterable[frozenset[str]], forbidden: frozenset[str]) -> list[str]:
    found = [min(any_of) if len(any_of) == 1 else "in:" + ",".join(sorted(any_of)) for any_of in sets]
    if len(forbidden) > 1:
        return [*found, "!in:" + ",".join(sorted(forbidden))]
    return [*found, *[f"!{name}" for name in forbidden]]


def at_work(chance: Random, cloud: Cloud) -> Cloud:
    """Return a cloud with other usage, regardless of its consumers."""

    def used(inventory: Inventory) -> Inventory:
        return replace(inventory, used=chance.choice((0, 0, inventory.used, chance.randint(0, inventory.total))))

    return {
        id_: replace(node, inventories={name: used(one) for name, one in node.inventories.items()})
        for id_, node in cloud.items()
    }
