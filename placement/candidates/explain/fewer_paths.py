"""The groups of a request's hierarchical names: requests without one of them, or with fewer of those that are alike."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from placement.allocators.group.tree import NamedGroup, partition
from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.domain.group_words import is_enumerated
from placement.domain.planner_request import ContainerPaths, PlannerRequest


def path_condition(name: str) -> Condition:
    """Return the condition that a path imposes, as a part of the request."""
    return Condition(ConditionKind.GROUP, (name,), name)


def removable_paths(request: PlannerRequest) -> Iterator[str]:
    """Yield the paths without which amounts are still asked for."""
    amounts = {name for name in request.paths if not is_enumerated(name.rpartition("/")[2])}
    yield from [name for name in request.paths if amounts - {name}]


def without_path(request: PlannerRequest, name: str) -> PlannerRequest:
    """Return a request without one of its paths."""
    return replace(request, paths={other: amount for other, amount in request.paths.items() if other != name})


class AlikeParts(NamedTuple):
    """Groups beside each other in ``paths`` that ask for the same.

    Args:
        container: the number of the container that asks for them.
        name: the beginning of their names, as the answer writes it, up to their labels.
        labels: their labels.
    """

    container: int
    name: str
    labels: Sequence[str]


def alike_parts(request: PlannerRequest) -> Iterator[AlikeParts]:
    """Yield the groups of ``paths`` that ask for the same as another one beside them, the outermost first."""
    for number, container in enumerate(request.all_paths()):
        yield from _alike_in(partition(container.paths), container.prefix, number)


def _alike_in(group: NamedGroup, name: str, container: int) -> Iterator[AlikeParts]:
    kinds: dict[tuple[str, object], list[str]] = defaultdict(list)
    for (level, label), inner in group.inside.items():
        kinds[level, _form(inner)].append(label)
    for (level, _of_each), labels in kinds.items():
        if len(labels) > 1:
            yield AlikeParts(container, f"{name}/{level}".lstrip("/"), labels)
    for (level, label), inner in group.inside.items():
        yield from _alike_in(inner, f"{name}/{level}/{label}".lstrip("/"), container)


def _form(group: NamedGroup) -> tuple[object, ...]:
    """Return everything about a group except labels."""
    inside = [(level, _form(inner)) for (level, _label), inner in group.inside.items()]
    return tuple(sorted(group.base.items())), tuple(sorted(inside))


def with_fewer(request: PlannerRequest, parts: AlikeParts, count: int) -> PlannerRequest:
    """Return a request with ``count`` of some parts."""
    containers = [*request.all_paths()]
    prefix, paths, _is_initial = containers[parts.container]
    left_out = tuple([f"{parts.name}/{label}/".removeprefix(f"{prefix}/") for label in parts.labels[count:]])
    containers[parts.container] = ContainerPaths(
        prefix, {name: amount for name, amount in paths.items() if not name.startswith(left_out)}
    )
    first, *others = [container.paths for container in containers]
    running = len(request.containers)
    return replace(request, paths=first, containers=tuple(others[:running]), init_containers=tuple(others[running:]))
