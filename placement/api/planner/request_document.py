"""Conversion of a planner request's validated body to a PlannerRequest, including checks across fields.

Where hierarchical names stand beside groups or rules, each group in a name becomes a group of the request: everything
that names ask for inside ``pcie/R0`` must come from one switch, which is a ``within`` rule; so rules can cover both.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from placement.allocators.group import split_name
from placement.allocators.group.tree import Path
from placement.api.candidate_query import MAX_CLASSES, MAX_GROUPS
from placement.api.fields import BodyPath, load_document
from placement.api.planner.request_fields import ALL, MAX_ADDED_IN_ALL, PER_SUBTREE, REQUEST, Expressions
from placement.domain.device_types import PREFIX, enumerated_traits, group_paths, is_enumerated
from placement.domain.names import both_spellings
from placement.domain.planner_request import THE_DEVICE, Affinity, Exclusive, PlannerGroup, PlannerRequest, Within
from placement.domain.search_plan import RequestGroup
from placement.errors import InvalidAt
from placement.formats.koordinator import KEYS as KOORDINATOR
from placement.formats.koordinator import in_planner_words
from placement.formats.pods import PastedPod, pasted_pod
from placement.services.planner.questions import Changes
from placement.settings import PlannerSettings

Rule = TypeVar("Rule", Within, Exclusive)

OUTSIDE = ""
"""The suffix under which amounts outside any group are requested."""


def names_as_groups(request: PlannerRequest, levels: Mapping[str, str]) -> PlannerRequest:
    """Turn a request's names into groups if it also has groups or rules; InvalidAt for what groups cannot express."""
    has_rules = request.affinity or request.within or request.exclusive or request.same_subtree
    if not request.paths or not (request.groups or has_rules):
        return request
    _check_names_beside_groups(request)
    amounts: dict[Path, dict[str, int]] = defaultdict(dict)
    for name, amount in request.paths.items():
        path, resource_class = split_name(name)
        amounts[path][resource_class] = amount
    outside = amounts.pop((), {})
    named = [_named_group(path, inner, levels) for path, inner in amounts.items()]
    suffixes = [_written(path) for path in amounts]
    return replace(
        request,
        groups=(*_with_outside(request.groups, outside), *named),
        paths={},
        written=dict(_written_names(request.paths)),
        affinity=tuple([_affinity_of_names(rule, suffixes) for rule in request.affinity]),
        within=(*[_below(rule, suffixes) for rule in request.within], *_nesting([*amounts], levels)),
        exclusive=tuple([_below(rule, suffixes) for rule in request.exclusive]),
    )


def _check_names_beside_groups(request: PlannerRequest) -> None:
    for key in ("containers", "init_containers", "translate"):
        if getattr(request, key):
            raise InvalidAt((key,), "The key is for hierarchical names alone, without groups and rules beside them.")
    if request.distinct:
        raise InvalidAt(("distinct",), 'Beside groups, write "group_policy": "isolate" instead.')


def _written(path: Path) -> str:
    return "/".join([part for step in path for part in step])


def _level(path: Path, levels: Mapping[str, str]) -> str:
    """Return the name of the level of a path's last group."""
    word = path[-1][0]
    names = {name.lower(): name for name in levels} | {trait: name for name, trait in levels.items()}
    level = names.get(word) or names.get(word.lower())
    if level is None:
        raise InvalidAt(("paths", _written(path)), f"There is no level {word!r}; there are {', '.join(levels)}.")
    return level


def _named_group(path: Path, amounts: Mapping[str, int], levels: Mapping[str, str]) -> PlannerGroup:
    of_level = frozenset({levels[_level(path, levels)]})
    resources = {name: amount for name, amount in amounts.items() if not is_enumerated(name)}
    bits = [enumerated_traits(name, amount) for name, amount in amounts.items() if is_enumerated(name)]
    return PlannerGroup(group=RequestGroup(suffix=_written(path), resources=resources, required=(of_level, *bits)))


def _written_names(amounts: Mapping[str, int]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield (group, class or trait) and the name that asks for it."""
    for name, amount in amounts.items():
        path, last = split_name(name)
        for resource in enumerated_traits(last, amount) if is_enumerated(last) else [last]:
            yield (_written(path), resource), name


def _with_outside(groups: Sequence[PlannerGroup], outside: Mapping[str, int]) -> Iterator[PlannerGroup]:
    """Yield the groups, adding to the unsuffixed one what names request outside groups."""
    unsuffixed = [group for group in groups if group.suffix == OUTSIDE]
    if outside and not unsuffixed:
        yield PlannerGroup(group=RequestGroup(suffix=OUTSIDE, resources=dict(outside)))
    for group in groups:
        resources = dict(group.group.resources)
        for name, amount in outside.items() if group in unsuffixed else ():
            resources[name] = resources.get(name, 0) + amount
        yield replace(group, group=replace(group.group, resources=resources))


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
        below = [suffix for suffix in suffixes if suffix == name or suffix.startswith(f"{name}/")]
        named += below or [written]
    return tuple(dict.fromkeys(named))


def _below(rule: Rule, suffixes: Sequence[str]) -> Rule:
    return replace(rule, groups=_expanded(rule.groups, suffixes))


def _affinity_of_names(rule: Affinity, suffixes: Sequence[str]) -> Affinity:
    primaries = _expanded([rule.primary], suffixes)
    primary = primaries[0] if len(primaries) == 1 else rule.primary
    secondaries = [suffix for suffix in _expanded(rule.secondaries, suffixes) if suffix != primary]
    return replace(rule, primary=primary, secondaries=tuple(secondaries))


Body = Mapping[str, Any]

NOTHING = Expressions()

CONFLICTING_TRAITS = "Traits are required and forbidden: {}."


def planner_request(body: Body, settings: PlannerSettings) -> PlannerRequest:
    """Return the request that a loaded body describes, in whatever words; InvalidAt if it contradicts itself."""
    if "pod" in body:
        body = _with_pod(body, settings)
    elif about_pods := {"task", "ignore_unknown"} & body.keys():
        raise InvalidAt((min(about_pods),), "The key needs a pod, and the request has none.")
    if KOORDINATOR & body.keys():
        translated = load_document(REQUEST, in_planner_words(body, settings.devices))
        body = {
            **body,
            "groups": {**translated["groups"], **body.get("groups", {})},
            "affinity": [*body.get("affinity", ()), *translated["affinity"]],
            "exclusive": [*body.get("exclusive", ()), *translated["exclusive"]],
        }
    # Groups ask for classes, whatever names these were written with.
    groups = {
        suffix: {
            **group,
            "resources": settings.devices.amounts_by_class(group.get("resources", {}), ("groups", suffix, "resources")),
        }
        for suffix, group in body.get("groups", {}).items()
    }
    body = {**body, "groups": groups}
    request = names_as_groups(replace(_request(body), **_in_paths(body, settings)), settings.levels)
    for path, sentence in _faults(request, settings):
        raise InvalidAt(path, sentence)
    return request


def ignored_in(settings: PlannerSettings, *bodies: Body) -> list[str]:
    """Return the paths of what is not applied of the pods in bodies."""
    return list(dict.fromkeys(path for body in bodies if "pod" in body for path in _pod(body, settings).ignored))


def _with_pod(body: Body, settings: PlannerSettings) -> Body:
    if twice := sorted(KOORDINATOR & body.keys()):
        raise InvalidAt((twice[0],), "The key cannot stand beside pod, which has its own.")
    words = load_document(REQUEST, _pod(body, settings).words)
    written, of_labels = body.get("root_required", NOTHING), words["root_required"]
    words["root_required"] = Expressions(
        (*written.required, *of_labels.required), written.forbidden | of_labels.forbidden
    )
    return {**body, **words}


def _pod(body: Body, settings: PlannerSettings) -> PastedPod:
    return pasted_pod(
        body["pod"], settings.devices, task=body.get("task"), ignores_unknown=body.get("ignore_unknown", False)
    )


def explains(body: Body, *, by_default: bool) -> bool:
    """Tell whether a body asks for an explanation."""
    explained: bool = body.get("explain", body.get("score", {}).get("explain", by_default))
    return explained


def _request(body: Body) -> PlannerRequest:
    root = body.get("root_required", NOTHING)
    score = body.get("score", {})
    named = body.get("profile", score.get("profile"))
    return PlannerRequest(
        groups=tuple(_group(suffix, group) for suffix, group in body.get("groups", {}).items()),
        isolate=body.get("group_policy") == "isolate",
        same_subtree=tuple(frozenset(suffixes) for suffixes in body.get("same_subtree", ())),
        root_required=frozenset(root.required),
        root_forbidden=root.forbidden,
        affinity=tuple(_affinity(index, rule) for index, rule in enumerate(body.get("affinity", ()))),
        within=tuple(
            Within(groups=tuple(rule["groups"]), level=rule["level"], required=_is_required(rule))
            for rule in body.get("within", ())
        ),
        exclusive=tuple(Exclusive(groups=tuple(r["groups"]), level=r["level"]) for r in body.get("exclusive", ())),
        avoided_trees=both_spellings(body.get("avoid", {}).get("trees", ())),
        translate=body.get("translate", False),
        distinct=body.get("distinct", False),
        profile=named if isinstance(named, str) else None,
        limit=body.get("limit", PlannerRequest().limit),
        per_tree=body.get("per_tree", 1),
        explain=explains(body, by_default=False),
    )


def _in_paths(body: Body, settings: PlannerSettings) -> dict[str, Any]:
    """Return what a body requests by hierarchical names, for one container or several."""
    devices = settings.devices
    first = group_paths({**body.get("paths", {}), **body.get("tree", {})}, devices)
    running, before = [
        [group_paths(container, devices, (key, index)) for index, container in enumerate(body.get(key, ()))]
        for key in ("containers", "init_containers")
    ]
    listed = [container for container in (first, *running) if container]
    if before and not listed:
        raise InvalidAt(("init_containers",), "Init containers run before containers: name containers or paths, too.")
    return {
        "paths": listed[0] if listed else {},
        "containers": tuple(listed[1:]),
        "init_containers": tuple([container for container in before if container]),
    }


def _group(suffix: str, group: Body) -> PlannerGroup:
    path = ("groups", suffix)
    count = group.get("count", 1)
    if "at_least" in group and count != PER_SUBTREE:
        raise InvalidAt((*path, "at_least"), f'The key needs "count": "{PER_SUBTREE}".')
    return PlannerGroup(
        group=_conditions(suffix, group, "selector" if "vf_selector" not in group else "vf_selector"),
        count=count if isinstance(count, int) else group.get("at_least", 1),
        per_subtree=count == PER_SUBTREE,
        everything=count == ALL,
        device=_device(suffix, group) if "vf_selector" in group else None,
    )


def _conditions(suffix: str, group: Body, selector: str) -> RequestGroup:
    required, selected = group.get("required", NOTHING), group.get(selector, NOTHING)
    member_of = group.get("member_of", NOTHING)
    return RequestGroup(
        suffix=suffix,
        resources=group.get("resources", {}),
        required=tuple(dict.fromkeys((*required.required, *selected.required))),
        forbidden=required.forbidden | selected.forbidden,
        member_of=member_of.required,
        forbidden_aggregates=member_of.forbidden,
        in_tree=group.get("in_tree"),
    )


def _device(suffix: str, group: Body) -> RequestGroup | None:
    selected = group.get("selector", NOTHING)
    return RequestGroup(suffix=suffix, required=selected.required, forbidden=selected.forbidden)


def _affinity(index: int, rule: Body) -> Affinity:
    primary = rule.get("primary", rule["groups"][0])
    if primary not in rule["groups"]:
        raise InvalidAt(("affinity", index, "primary"), f"{primary!r} is not one of the groups.")
    secondaries = tuple(suffix for suffix in rule["groups"] if suffix != primary)
    return Affinity(primary=primary, secondaries=secondaries, level=rule["level"], required=_is_required(rule))


def _is_required(rule: Body) -> bool:
    return bool(rule.get("mode", "required") == "required")


def _faults(request: PlannerRequest, settings: PlannerSettings) -> Iterator[tuple[BodyPath, str]]:
    """Yield each error in a request with its path."""
    if not request.groups and not request.paths:
        yield (), "There must be groups, a tree, paths, or requests of devices."
    if len({name.rpartition("/")[0] for name in request.paths}) > MAX_GROUPS:
        yield ("paths",), f"There are more than {MAX_GROUPS} groups."
    if request.profile is not None and request.profile not in settings.profiles:
        yield ("profile",), f"There is no profile {request.profile!r}; there are {', '.join(settings.profiles)}."
    if conflicting := [any_of for any_of in request.root_required if any_of <= request.root_forbidden]:
        yield ("root_required",), CONFLICTING_TRAITS.format(", ".join(sorted(conflicting[0])))
    yield from _faults_of_groups(request)
    yield from _faults_of_rules(request, settings)


def _faults_of_groups(request: PlannerRequest) -> Iterator[tuple[BodyPath, str]]:
    if len(request.groups) > MAX_GROUPS:
        yield ("groups",), f"There are more than {MAX_GROUPS} groups."
    secondaries = [suffix for rule in request.affinity for suffix in rule.secondaries]
    tied = frozenset[str]().union(*request.same_subtree)
    for group in request.groups:
        path = ("groups", group.suffix)
        if len(group.group.resources) > MAX_CLASSES:
            yield (*path, "resources"), f"There are more than {MAX_CLASSES} resource classes."
        if not group.group.is_granular and (group.count != 1 or group.everything or group.per_subtree or group.device):
            yield path, "The unsuffixed group cannot have a count: its classes may come from different providers."
        if group.per_subtree and secondaries.count(group.suffix) != 1:
            yield (*path, "count"), f'"{PER_SUBTREE}" is for a group that one affinity has beside its primary.'
        if not group.group.resources and group.suffix not in tied:
            yield path, "A group without resources must be in same_subtree."
        if conflicts := [any_of for any_of in group.group.required if any_of <= group.group.forbidden]:
            yield path, CONFLICTING_TRAITS.format(", ".join(sorted(conflicts[0])))


def _faults_of_rules(request: PlannerRequest, settings: PlannerSettings) -> Iterator[tuple[BodyPath, str]]:
    existing = {group.suffix for group in request.groups}
    affinity = [((rule.primary, *rule.secondaries), rule.level) for rule in request.affinity]
    rules = {
        "affinity": affinity,
        "within": [(rule.groups, rule.level) for rule in request.within],
        "exclusive": [(rule.groups, rule.level) for rule in request.exclusive],
    }
    for name, listed in rules.items():
        for index, (groups, level) in enumerate(listed):
            yield from _unknown((name, index, "groups"), groups, existing)
            is_level = level in settings.levels or level.isupper() or (name == "exclusive" and level == THE_DEVICE)
            if not is_level:
                sentence = f"There is no level {level!r}; there are {', '.join(settings.levels)}, and traits."
                yield (name, index, "level"), sentence
    for index, suffixes in enumerate(request.same_subtree):
        yield from _unknown(("same_subtree", index), sorted(suffixes), existing)


def _unknown(path: BodyPath, suffixes: Iterable[str], existing: set[str]) -> Iterator[tuple[BodyPath, str]]:
    if unknown := [suffix for suffix in suffixes if suffix not in existing]:
        yield path, f"There is no group {unknown[0]!r}."


def changes_of(body: Body) -> Changes | None:
    """Return the changes to the cloud that a body assumes, if any; InvalidAt if it adds too many trees."""
    more = [(addition["like"], addition["count"]) for addition in body.get("with", ())]
    if sum(count for _like, count in more) > MAX_ADDED_IN_ALL:
        raise InvalidAt(("with",), f"The key adds more than {MAX_ADDED_IN_ALL} trees.")
    without, released = body.get("without", ()), body.get("released", ())
    return Changes(without, more, sorted(both_spellings(released))) if more or without or released else None
