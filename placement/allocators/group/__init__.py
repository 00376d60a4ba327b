"""The Group Allocator: requests for devices in groups, matched to what nodes offer by hierarchical names.

After S. Mehrotra, "Group Allocator" (KubeGPU), made exact: it finds a placement whenever there is one, and the best one
in the order that ``Objective`` describes. Where that system's own implementation differs it is by accident of labels or
because it does not look back. ``place`` is the same for trees of locations instead of names, ``requests``
and ``topology`` are short forms of requests.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placement.allocators.group.names import join_name, location_tree, requirement_tree
from placement.allocators.group.objective import Objective
from placement.allocators.group.place import Placement, place
from placement.allocators.group.rules import USUAL_RULES, Rules
from placement.allocators.group.scorers import Phase
from placement.allocators.group.tree import Path, Placed, Requirement
from placement.allocators.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class Container:
    """One request.

    Args:
        requested: how much is asked for of each resource, by hierarchical name, in the resource's unit.
        phase: running containers add up; one of initialisation shares what the others take and leaves the score alone.
        recorded: for resources placed before, the names of what they got; they keep it.
    """

    requested: Mapping[str, int]
    phase: Phase = Phase.RUNNING
    recorded: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be allocated in one place, by hierarchical name, and how much of it is in use."""

    allocatable: Mapping[str, int]
    used: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupAllocation:
    """What came out for one node.

    Args:
        feasible: whether the containers fit.
        complete: whether that is certain; False only if the budget ended.
        score: the seed's score, 0..1; 0 if nothing was asked for or nothing found.
        mappings: for each container in the order given the name of what each requested resource got.
        taken: how much of each resource the containers take together.
        unmet: requested resources that would not fit even alone, if that is the reason why nothing was found.
        objective: all that was compared; None if nothing was found.
    """

    feasible: bool
    complete: bool
    score: float = 0.0
    mappings: tuple[Mapping[str, str], ...] = ()
    taken: Mapping[str, int] = field(default_factory=dict)
    unmet: tuple[str, ...] = ()
    objective: Objective | None = None


@dataclass(frozen=True, slots=True)
class BestNode:
    """The node with the best placement; ``complete`` is False if the budget ended on any node, chosen or not."""

    name: str
    allocation: GroupAllocation
    complete: bool


def allocate(node: Offer, containers: Sequence[Container], rules: Rules = USUAL_RULES) -> GroupAllocation:
    """Place all containers of one workload on a node.

    Groups that a request leaves out are filled in. Groups beside each other may share a location unless the rules say
    ``distinct``.

    Args:
        node: the node.
        containers: what is to be placed together.
        rules: what is good.

    Raises:
        ValueError: a name or an amount is not valid, a scorer returned a score outside 0..1, or there are more than 200
            groups in the request.

    The example of the seed: two GPUs with at least 1 and 2 GiB.

    >>> sizes = {"dev0": 1, "dev1": 3, "dev2": 2, "dev3": 4}
    >>> offer = {"cpu": 4} | {f"gpu/{name}/memory": size for name, size in sizes.items()}
    >>> wanted = Container({"cpu": 2, "gpu/0/memory": 1, "gpu/1/memory": 2})
    >>> allocate(Offer(offer), [wanted]).mappings[0]
    {'cpu': 'cpu', 'gpu/0/memory': 'gpu/dev0/memory', 'gpu/1/memory': 'gpu/dev2/memory'}
    """
    root = location_tree(node.allocatable, node.used)
    requirements = [requirement_tree(one.requested, one.phase, one.recorded) for one in containers]
    if not any([one.requested for one in containers]):
        return GroupAllocation(feasible=True, complete=True, mappings=tuple([{} for _one in containers]))
    placement = place(root, requirements, rules)
    return _allocation(placement, requirements, containers)


def best_node(
    nodes: Mapping[str, Offer], containers: Sequence[Container], rules: Rules = USUAL_RULES
) -> BestNode | None:
    """Return the node where the containers are placed best, of equals the first in natural order (equation 1).

    Args:
        nodes: the nodes by name.
        containers: what is to be placed together.
        rules: what is good. If no levels are given, every node counts its own, the innermost first.

    Returns:
        None if the containers fit nowhere.

    Raises:
        ValueError: as for ``allocate``.

    >>> nodes = {"big": Offer({"cpu": 8}), "small": Offer({"cpu": 2}), "full": Offer({"cpu": 2}, {"cpu": 1})}
    >>> best_node(nodes, [Container({"cpu": 2})]).name
    'small'
    """
    results = {name: allocate(nodes[name], containers, rules) for name in sorted(nodes, key=natural_key)}
    complete = all([result.complete for result in results.values()])
    fitting = [name for name, result in results.items() if result.feasible]
    if not fitting:
        return None
    name = max(fitting, key=lambda name: _rank(results[name]))
    return BestNode(name, results[name], complete)


def released(used: Mapping[str, int], taken: Mapping[str, int]) -> dict[str, int]:
    """Return what is in use after a workload has given back what it took.

    >>> released({"cpu": 5, "memory": 7}, {"cpu": 2})
    {'cpu': 3, 'memory': 7}
    """
    return {name: amount - taken.get(name, 0) for name, amount in used.items()}


def _rank(allocation: GroupAllocation) -> tuple[object, ...]:
    return () if allocation.objective is None else allocation.objective.rank


def _allocation(
    placement: Placement, requirements: Sequence[Requirement], containers: Sequence[Container]
) -> GroupAllocation:
    result = GroupAllocation(placement.feasible, placement.complete)
    if placement.objective is None:
        return replace(result, unmet=_unmet_names(placement, requirements))
    mappings = [dict(_pairs(placed, ())) for placed in placement.placed]
    ordered = [{name: found[name] for name in one.requested} for found, one in zip(mappings, containers, strict=True)]
    return replace(
        result,
        score=float(placement.objective.score),
        mappings=tuple(ordered),
        taken={join_name(path, base): amount for (path, base), amount in placement.taken.items()},
        objective=placement.objective,
    )


def _pairs(placed: Placed, path: Path) -> Iterator[tuple[str, str]]:
    """Yield each requested name inside a group with what it got (the seed's equation 15).

    Args:
        placed: the group and its location.
        path: where it is in the request.
    """
    for base in placed.requirement.amounts:
        yield join_name(path, base), join_name(placed.path, base)
    for part in placed.parts:
        yield from _pairs(part, (*path, (part.requirement.level, part.requirement.label)))


def _unmet_names(placement: Placement, requirements: Sequence[Requirement]) -> tuple[str, ...]:
    unmet = {id(requirement) for requirement in placement.unmet}
    names = [name for requirement in requirements for name, group in _names(requirement, ()) if id(group) in unmet]
    return tuple(sorted(names, key=natural_key))


def _names(requirement: Requirement, path: Path) -> Iterator[tuple[str, Requirement]]:
    for base in requirement.amounts:
        yield join_name(path, base), requirement
    for part in requirement.parts:
        yield from _names(part, (*path, (part.level, part.label)))
