"""The definition of a candidate, by brute force; a condition can be omitted, as in explanations.

It is independent of how candidates and explanations are computed: from the server it imports only the types for
requests and conditions, and no code that works on them.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from placement.candidates.explain.explanation import NUMERIC, Condition, ConditionKind, any_of_value
from placement.domain.search_plan import CandidateRequest, RequestGroup
from tests.small_clouds import Cloud, Node, shares_of


class Slot(NamedTuple):
    """What one provider serves: a granular group, or a class of the unsuffixed one."""

    suffix: str
    resources: tuple[tuple[str, int], ...]

    @property
    def is_granular(self) -> bool:
        return self.suffix != ""


Placed = list[tuple[Slot, int]]
"""Slots, each with the provider that serves it."""


def slots_of(request: CandidateRequest) -> list[Slot]:
    """Return the slots of a request, group by group."""
    slots = []
    for group in request.groups:
        amounts = tuple(sorted(group.resources.items()))
        slots += [Slot(group.suffix, amounts)] if group.suffix else [Slot("", (amount,)) for amount in amounts]
    return slots


class Definition:
    """What a request demands of a choice of providers, directly from the API's description; a condition may be omitted.

    Args:
        request: the request.
        cloud: the cloud.
        without: the condition to omit.
    """

    def __init__(self, request: CandidateRequest, cloud: Cloud, without: Condition | None = None) -> None:
        self.request = request
        self.cloud = cloud
        self.without = without
        self.slots = slots_of(request)
        self.groups = {group.suffix: group for group in request.groups}
        self.shares = shares_of(cloud)

    def trees(self) -> set[int]:
        """Return the roots of the trees with a candidate."""
        return {root for root in {node.root for node in self.cloud.values()} if next(self.candidates(root), None)}

    def is_out(self, sort: ConditionKind, suffix: str | None, value: str) -> bool:
        condition = self.without
        if condition is None or condition.value != value:
            return False
        if condition.kind != sort and not (condition.kind == ConditionKind.AMOUNT and sort in NUMERIC):
            return False
        return suffix is None or suffix in condition.groups

    def candidates(self, root: int) -> Iterator[tuple[int, ...]]:
        """Yield the candidates of a tree: the provider of each slot."""
        options = [self.options(slot, root) for slot in self.slots] if self.root_is_right(root) else [()]
        for choice in product(*options):
            if self.is_candidate(root, list(zip(self.slots, choice, strict=True))):
                yield choice

    def root_is_right(self, root: int) -> bool:
        """Return whether a tree is eligible at all."""
        node, request = self.cloud[root], self.request
        if any(
            not any_of & node.traits and not self.is_out(ConditionKind.ROOT_REQUIRED, None, any_of_value(any_of))
            for any_of in request.root_required
        ):
            return False
        if any(
            t in node.traits and not self.is_out(ConditionKind.ROOT_FORBIDDEN, None, f"!{t}")
            for t in request.root_forbidden
        ):
            return False
        loose = self.groups.get("", RequestGroup())
        if self.is_out(ConditionKind.FORBIDDEN_AGGREGATES, "", _forbidden(loose)):
            return True
        return not node.aggregates & loose.forbidden_aggregates

    def options(self, slot: Slot, root: int) -> list[int]:
        """Return the providers that can serve a slot in a tree."""
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
                ConditionKind.CAPACITY: amount <= stock.left,
                ConditionKind.MIN_UNIT: amount >= stock.min_unit,
                ConditionKind.MAX_UNIT: amount <= stock.max_unit,
                ConditionKind.STEP_SIZE: amount % stock.step_size == 0,
            }
            if not all(holds or self.is_out(sort, slot.suffix, f"{name}:{amount}") for sort, holds in rules.items()):
                return False
        return True

    def _is_kind(self, slot: Slot, node: Node) -> bool:
        group = self.groups[slot.suffix]
        if any(
            t in node.traits and not self.is_out(ConditionKind.FORBIDDEN, slot.suffix, f"!{t}") for t in group.forbidden
        ):
            return False
        return not slot.is_granular or all(
            any_of & node.traits or self.is_out(ConditionKind.REQUIRED, slot.suffix, any_of_value(any_of))
            for any_of in group.required
        )

    def _is_placed(self, slot: Slot, node: Node, *, shared: bool) -> bool:
        group = self.groups[slot.suffix]
        spans = not slot.is_granular and not shared
        # Either the provider itself is in all of them, or its root is; a mix does not count.
        if not any(self._is_member(slot, one) for one in ([node, self.cloud[node.root]] if spans else [node])):
            return False
        forbidden = node.aggregates & group.forbidden_aggregates
        if forbidden and not self.is_out(ConditionKind.FORBIDDEN_AGGREGATES, slot.suffix, _forbidden(group)):
            return False
        if group.in_tree is None:
            return True
        if shared and not slot.is_granular:
            return self.is_out(ConditionKind.IN_TREE, slot.suffix, group.in_tree)
        tree = next((other.root for other in self.cloud.values() if other.uuid == group.in_tree), None)
        right = node.root == tree if group.resources else tree is not None
        return right or self.is_out(ConditionKind.IN_TREE, slot.suffix, group.in_tree)

    def _is_member(self, slot: Slot, node: Node) -> bool:
        return all(
            any_of & node.aggregates or self.is_out(ConditionKind.MEMBER_OF, slot.suffix, any_of_value(any_of))
            for any_of in self.groups[slot.suffix].member_of
        )

    def is_candidate(self, root: int, placed: Placed) -> bool:
        """Return whether providers that can serve the slots may serve them together."""
        return (
            self._is_apart(placed)
            and self._fits_together(placed)
            and self._has_heads(placed)
            and self._has_traits(placed, root)
            and (self._combines() or self._is_one_of_each_tree(placed))
        )

    def _is_apart(self, placed) -> bool:
        granular = [provider for slot, provider in placed if slot.is_granular]
        left_out = self.without is not None and self.without.kind == ConditionKind.GROUP_POLICY
        return not self.request.isolate or left_out or len(set(granular)) == len(granular)

    def _fits_together(self, placed) -> bool:
        taken = defaultdict(list)
        for slot, provider in placed:
            for name, amount in slot.resources:
                taken[provider, name].append(amount)
        for (provider, name), amounts in taken.items():
            if len(amounts) == 1 or self.is_out(ConditionKind.COMBINED_CAPACITY, None, name):
                continue
            stock = self.cloud[provider].inventories[name]
            # If amounts add up, a condition on one of them applies to their sum.
            out = self.without.kind if self.without and self.without.resource_class == name else None
            room = [stock.left] * (out not in {ConditionKind.CAPACITY, ConditionKind.AMOUNT})
            room += [stock.max_unit] * (out not in {ConditionKind.MAX_UNIT, ConditionKind.AMOUNT})
            if room and sum(amounts) > min(room):
                return False
        return True

    def _has_heads(self, placed) -> bool:
        for suffixes in self.request.same_subtree:
            if self.is_out(ConditionKind.SAME_SUBTREE, None, ",".join(sorted(suffixes))):
                continue
            members = {provider for slot, provider in placed if slot.suffix in suffixes}
            if not any(all(head in self.ancestry(other) for other in members) for head in members):
                return False
        return True

    def ancestry(self, provider: int) -> list[int]:
        """Return a provider and its ancestors, nearest first."""
        found, here = [], provider
        while here is not None:
            found.append(here)
            here = self.cloud[here].parent
        return found

    def _has_traits(self, placed, root: int) -> bool:
        serving = {provider for slot, provider in placed if not slot.is_granular}
        if self.without is not None and self.without.kind == ConditionKind.TRAIT_PLACEMENT:
            sharing = {provider for provider, trees in self.shares.items() if root in trees}
            serving |= {node.id for node in self.cloud.values() if node.root == root} | sharing
        traits = frozenset().union(*(self.cloud[provider].traits for provider in serving))
        required = self.groups.get("", RequestGroup()).required
        return all(
            any_of & traits or self.is_out(ConditionKind.REQUIRED, "", any_of_value(any_of)) for any_of in required
        )

    def _combines(self) -> bool:
        left_out = self.without is not None and self.without.kind == ConditionKind.ONE_PROVIDER_PER_TREE
        return self.request.combines_nested or left_out

    def _is_one_of_each_tree(self, placed) -> bool:
        by_root = defaultdict(set)
        for _slot, provider in placed:
            by_root[self.cloud[provider].root].add(provider)
        return all(len(found) == 1 for found in by_root.values())


def _forbidden(group: RequestGroup) -> str:
    return any_of_value(group.forbidden_aggregates, forbidden=True) if group.forbidden_aggregates else ""


def without_part(request: CandidateRequest, condition: Condition) -> CandidateRequest:
    """Return a request without the class or the groups that a condition names."""
    if condition.kind == ConditionKind.GROUP:
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
