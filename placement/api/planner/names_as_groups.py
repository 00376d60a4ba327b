"""Hierarchical names combined with groups or rules: each group in a name becomes a group of the request.

Everything that names ask for inside ``pcie/R0`` must come from one switch, which is a ``within`` rule; so rules can
cover both.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from placement.allocators.group.tree import Path, split_name
from placement.domain.candidate_request import RequestGroup
from placement.domain.group_words import PREFIX, enumerated_traits, is_enumerated
from placement.domain.planner_request import Affinity, Exclusive, PlannerGroup, PlannerRequest, Within
from placement.errors import InvalidAt

Rule = TypeVar("Rule", Within, Exclusive)

OUTSIDE = ""
"""The suffix under which amounts outside any group are requested."""


def names_as_groups(request: PlannerRequest, levels: Mapping[str, str]) -> PlannerRequest:
    """Turn a request's names into groups if it also has groups or rules; else return it unchanged.

    Args:
        request: the request.
        levels: the trait of each level's places, by level name.

    Raises:
        InvalidAt: a name contains a group of no known level, or names express something that groups cannot.
    """
    has_rules = request.affinity or request.within or request.exclusive or request.same_subtree
    if not request.paths or not (request.groups or has_rules):
        return request
    _check(request)
    amounts: dict[Path, dict[str, int]] = defaultdict(dict)
    for name, amount in request.paths.items():
        path, resource_class = split_name(name)
        amounts[path][resource_class] = amount
    outside = amounts.pop((), {})
    named = [_group(path, of, levels) for path, of in amounts.items()]
    suffixes = [_written(path) for path in amounts]
    return replace(
        request,
        groups=(*_with_outside(request.groups, outside), *named),
        paths={},
        written=dict(_written_names(request.paths)),
        affinity=tuple([_affinity(rule, suffixes) for rule in request.affinity]),
        within=(*[_below(rule, suffixes) for rule in request.within], *_nesting([*amounts], levels)),
        exclusive=tuple([_below(rule, suffixes) for rule in request.exclusive]),
    )


def _check(request: PlannerRequest) -> None:
    for key in ("containers", "init_containers", "translate"):
        if getattr(request, key):
            raise InvalidAt((key,), "This is for names alone: no groups and no rules beside them.")
    if request.distinct:
        raise InvalidAt(("distinct",), 'Beside groups it is written "group_policy": "isolate".')


def _written(path: Path) -> str:
    return "/".join([part for step in path for part in step])


def _level(path: Path, levels: Mapping[str, str]) -> str:
    """Return the name of the level of a path's last group."""
    word = path[-1][0]
    known = {name.lower(): name for name in levels} | {trait: name for name, trait in levels.items()}
    level = known.get(word) or known.get(word.lower())
    if level is None:
        raise InvalidAt(("paths", _written(path)), f"There is no level {word!r}; there are {', '.join(levels)}.")
    return level


def _group(path: Path, amounts: Mapping[str, int], levels: Mapping[str, str]) -> PlannerGroup:
    of_level = frozenset({levels[_level(path, levels)]})
    resources = {name: amount for name, amount in amounts.items() if not is_enumerated(name)}
    bits = [enumerated_traits(name, amount) for name, amount in amounts.items() if is_enumerated(name)]
    return PlannerGroup(group=RequestGroup(suffix=_written(path), resources=resources, required=(of_level, *bits)))


def _written_names(amounts: Mapping[str, int]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield (group, class or trait) and the name that asks for it."""
    for name, amount in amounts.items():
        path, last = split_name(name)
        for asked in enumerated_traits(last, amount) if is_enumerated(last) else [last]:
            yield (_written(path), asked), name


def _with_outside(groups: Sequence[PlannerGroup], outside: Mapping[str, int]) -> Iterator[PlannerGroup]:
    """Yield the groups, adding to the unsuffixed one what names request outside groups."""
    unsuffixed = [one for one in groups if one.suffix == OUTSIDE]
    if outside and not unsuffixed:
        yield PlannerGroup(group=RequestGroup(suffix=OUTSIDE, resources=dict(outside)))
    for one in groups:
        resources = dict(one.group.resources)
        for name, amount in outside.items() if one in unsuffixed else ():
            resources[name] = resources.get(name, 0) + amount
        yield replace(one, group=replace(one.group, resources=resources))


def _nesting(paths: Sequence[Path], levels: Mapping[str, str]) -> Iterator[Within]:
    """Yield rules that keep together, in one place, what is requested inside the same group."""
    inside: dict[Path, list[str]] = defaultdict(list)
    for path in paths:
        for end in range(1, len(path) + 1):
            inside[path[:end]].append(_written(path))
    for path, suffixes in inside.items():
        if suffixes != [_written(path)]:
            yield Within(groups=tuple(suffixes), level=_level(path, levels), required=True)


def _expanded(groups: Sequence[str], suffixes: Sequence[str]) -> tuple[str, ...]:
    """Return the suffixes meant by groups; a name means all groups inside it."""
    named: list[str] = []
    for written in groups:
        name = PREFIX.sub("", written, count=1)
        below = [one for one in suffixes if one == name or one.startswith(f"{name}/")]
        named += below or [written]
    return tuple(dict.fromkeys(named))


def _below(rule: Rule, suffixes: Sequence[str]) -> Rule:
    return replace(rule, groups=_expanded(rule.groups, suffixes))


def _affinity(rule: Affinity, suffixes: Sequence[str]) -> Affinity:
    primaries = _expanded([rule.primary], suffixes)
    primary = primaries[0] if len(primaries) == 1 else rule.primary
    others = [one for one in _expanded(rule.secondaries, suffixes) if one != primary]
    return replace(rule, primary=primary, secondaries=tuple(others))
