"""What requests ask of a cloud, and what they assume of it: names are looked up in a snapshot."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from placement.allocators import Budget
from placement.allocators.devices import STEPS
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.paths import PathComposer, UnknownLevel
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.planner.planner_trees import SeenCloud
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.names import similar_names
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.domain.tree import AS_IT_IS, Levels, MoreTrees, Overlay
from placement.errors import InvalidAt
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.fragmentation import FragmentationJudge
from placement.store.allocations import held_by
from placement.store.connection.database import Transaction
from placement.store.marks import hosts_in
from placement.store.resource_classes import all_classes
from placement.store.search.names import roots_of_providers, tree_summaries


@dataclass(frozen=True, slots=True)
class Changes:
    """Assumed changes to the cloud: trees that are gone, more that are empty, and consumers that have given back all.

    Trees are given by any of their providers, those that are gone also by an aggregate of one.
    """

    without: Sequence[str] = ()
    more: Sequence[tuple[str, int]] = ()
    released: Sequence[str] = ()


def overlay_of(tx: Transaction, changes: Changes, overlay: Overlay = AS_IT_IS) -> Overlay:
    """Put changes on top of an overlay; InvalidAt if there is no such provider or aggregate."""
    overlay = released(tx, changes.released, overlay) if changes.released else overlay
    if changes.without:
        of_providers = roots_of_providers(tx, changes.without)
        of_aggregates = hosts_in(tx, changes.without)
        for number, uuid in enumerate(changes.without):
            if uuid not in of_providers and uuid not in of_aggregates:
                raise InvalidAt(("without", number), f"There is no provider {uuid}, and no aggregate.")
            gone: Collection[int] = of_aggregates[uuid] if uuid in of_aggregates else {of_providers[uuid]}
            overlay = overlay.without(gone)
    roots = roots_of_providers(tx, [uuid for uuid, _count in changes.more]) if changes.more else {}
    for number, (uuid, count) in enumerate(changes.more):
        if uuid not in roots:
            raise InvalidAt(("with", number, "like"), f"There is no provider {uuid}.")
        overlay = replace(overlay, more=(*overlay.more, MoreTrees(roots[uuid], count)))
    return overlay


def released(tx: Transaction, consumer_uuids: Collection[str], overlay: Overlay = AS_IT_IS) -> Overlay:
    """Return an overlay in which consumers have given back all that they hold."""
    rows = sorted(held_by(tx, consumer_uuids), key=attrgetter("provider_id", "class_id"))
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
    for row in rows:
        overlay = overlay.releasing({row.provider_id: {names[row.class_id]: row.used}})
    return overlay


def emptied(tx: Transaction, roots: Collection[int], overlay: Overlay) -> Overlay:
    """Return an overlay in which some trees exist and are empty."""
    read = tree_summaries(tx, roots)
    used = {
        provider: {read.class_names[class_id]: -int(used) for class_id, *_capacity, used in amounts if used}
        for provider, amounts in read.stocks.items()
    }
    changes = {provider: amounts for provider, amounts in overlay.changes.items() if provider not in read.members}
    return replace(
        overlay,
        changes={**changes, **{provider: amounts for provider, amounts in used.items() if amounts}},
        avoided=overlay.avoided - {*roots},
        gone=overlay.gone - {*roots},
    )


@dataclass(frozen=True, slots=True)
class PlannerOptions:
    """The operator's settings for a request: profile and judge, traits and locks of levels, the outermost first."""

    profile: RankingProfile
    levels: Mapping[str, str]
    locks: Mapping[str, str]
    judge: FragmentationJudge | None = None

    def levels_for(self, request: PlannerRequest) -> Levels:
        """Return the levels of a request, with traits that it names itself as the innermost ones."""
        own = [level for level in dict.fromkeys(request.levels()) if level not in self.levels]
        further = [trait for trait in own if trait not in self.levels.values()]
        return Levels((*self.levels, *further), (*self.levels.values(), *further))

    def asked_for(self, request: PlannerRequest) -> tuple[object, ...]:
        """Return all that decides whether there is a place for a request, besides the cloud."""
        return replace(request, limit=1, per_tree=1, explain=False), self.profile, self.levels, self.locks


STEPS_PER_REQUEST = 4 * STEPS
"""The step budget for all searches of one client request, for all members of a gang."""


class Composers:
    """The composers of one client request, and their budget of steps."""

    def __init__(self, steps: int = STEPS_PER_REQUEST) -> None:
        self.budget = Budget(steps)
        """The budget of the request as a whole."""
        self.budget_now = self.budget
        """The budget of the member that is being placed; without members, the whole one."""
        self._composers: list[tuple[PlannerRequest, PlannerOptions, ProposalComposer]] = []

    def allot(self, *, among: int) -> None:
        """Allot the next of ``among`` members an equal part of the steps left; what it leaves goes to later ones."""
        self.budget_now = self.budget.child(self.budget.remaining // among)

    def composer(self, request: PlannerRequest, options: PlannerOptions) -> ProposalComposer:
        """Return the memoising composer of a request, the same for equal requests; InvalidAt for an unknown level."""
        for *arguments, composer in self._composers:
            if arguments == [request, options]:
                return composer
        if request.paths:
            composer = composer_of_paths(request, options)
        else:
            judge = options.judge.latest if options.judge else None
            composer = DeviceComposer(request, options.levels_for(request), locks=options.locks, judge=judge)
        self._composers.append((request, options, composer))
        return composer


def composer_of_paths(request: PlannerRequest, options: PlannerOptions) -> PathComposer:
    """Return the composer of a request of hierarchical names; InvalidAt for a name that is not valid."""
    levels = options.levels_for(request)
    try:
        return PathComposer(request, levels, locks=options.locks)
    except UnknownLevel as unknown:
        level, name = unknown.args
        sentence = (
            f"There is no level {level!r}; there are {', '.join(levels.names)}. "
            f"Name the trait of such providers under levels in planner.yaml: {level.lower()}: CUSTOM_..."
        )
        # The last part may have been written differently from the class it became.
        raise InvalidAt(("paths", name.rpartition("/")[0]), sentence) from unknown
    except ValueError as wrong:
        raise InvalidAt(("paths",), str(wrong)) from wrong


def question_for(
    tx: Transaction, request: PlannerRequest, options: PlannerOptions, *, composers: Composers | None = None
) -> PlannerQuestion:
    """Look up what a request names, and return the question for its search; InvalidAt for what does not exist."""
    shared = composers or Composers()
    composer = shared.composer(request, options)
    _check_names(tx, request, composer.plan)
    avoided = frozenset(roots_of_providers(tx, request.avoided_trees).values())
    cloud = _seen_cloud(tx, request, composer, options=options)
    return PlannerQuestion(
        composer, cloud, profile=options.profile, locks=options.locks, budget=lambda: shared.budget_now, avoided=avoided
    )


def _seen_cloud(
    tx: Transaction, request: PlannerRequest, composer: ProposalComposer, *, options: PlannerOptions
) -> SeenCloud:
    cloud, levels = cloud_in(tx), composer.levels
    # Rules about several providers are left to composing. What paths ask for may be taken in turn.
    reader = cloud.reader(composer.plan, ids_in(tx, composer.plan), adds_up=not request.paths)
    trait_ids = tx.names.traits.ids(tx.connection, traits_that_decide(request, levels))
    cloud.sets.read(traits=trait_ids.values())
    return SeenCloud(
        reader,
        levels=[trait_ids.get(trait) for trait in levels.traits],
        class_names=tx.names.classes.names(tx.connection, cloud.columns.class_ids),
        trait_names={id_: name for name, id_ in trait_ids.items()},
        names=cloud.names.of_trees,
        kept=cloud.kept,
        node_classes=cloud.node_classes(options.profile),
        judge=options.judge.in_snapshot(tx) if options.judge else None,
    )


def traits_that_decide(request: PlannerRequest, levels: Levels) -> frozenset[str]:
    """Return the traits of levels, and those that rules about single devices or enumerations name."""
    devices = [group.device for group in request.groups if group.device is not None]
    enumerated = [traits for _name, traits in request.enumerated()]
    return frozenset(levels.traits).union(
        *enumerated, *[device.forbidden.union(*device.required) for device in devices]
    )


def _check_names(tx: Transaction, request: PlannerRequest, plan: Plan) -> None:
    """Refuse the first name that does not exist."""
    names = {name for demand in plan.demands for name, _amount in demand.resources}
    classes = tx.names.classes.ids(tx.connection, names)
    for name in sorted(names - classes.keys()):
        similar = similar_names(name, [resource_class.name for resource_class in all_classes(tx)])
        hint = f" Similar: {', '.join(similar)}." if similar else ""
        raise InvalidAt(_place_of_class(request, name), f"There is no resource class {name}.{hint}")
    trait_sets = list(_traits_of(request))
    traits = tx.names.traits.ids(tx.connection, frozenset().union(*[of_one for _path, of_one in trait_sets]))
    for path, of_one in trait_sets:
        if unknown := sorted(of_one - traits.keys()):
            written = request.written.get((path[1], unknown[0])) if len(path) > 1 else None
            raise InvalidAt(("paths", written) if written else path, f"There is no trait {unknown[0]}.")


def _place_of_class(request: PlannerRequest, resource_class: str) -> tuple[str, ...]:
    """Return the path in the document where a class is first asked for."""
    for group in request.groups:
        if resource_class in group.group.resources:
            written = request.written.get((group.suffix, resource_class))
            return ("paths", written) if written else ("groups", group.suffix, "resources", resource_class)
    names = [name for container in request.all_paths() for name in container.paths]
    named = [name for name in names if name.rpartition("/")[2] == resource_class]
    return ("paths", *named[:1])


def _traits_of(request: PlannerRequest) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Yield the traits named in conditions, with the path of each condition."""
    yield ("root_required",), request.root_forbidden.union(*request.root_required)
    for name, traits in request.enumerated():
        yield ("paths", name), traits
    for group in request.groups:
        for conditions, key in ((group.group, "required"), (group.device, "selector")):
            if conditions is not None:
                yield ("groups", group.suffix, key), conditions.forbidden.union(*conditions.required)
