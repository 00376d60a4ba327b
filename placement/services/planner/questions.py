"""Makes planner requests into questions: looks up what they name in a snapshot, and what that shows of the cloud."""

from collections.abc import Iterator

from placement.candidates.planner.question import PlannerQuestion, PlannerTerms, SeenCloud
from placement.candidates.ranking import Ranking
from placement.candidates.tree_reader import TreeReader
from placement.domain.names import similar_names
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.errors import InvalidAt
from placement.services.cloud_cache import CloudCache, NamesInSnapshot, kept_in, tree_reader
from placement.services.planner.composers import Composers, PlannerOptions
from placement.services.resource_classes import classes_in_families
from placement.store.connection.unit_of_work import Transaction
from placement.store.resource_classes import all_classes
from placement.store.search.names import ids_for
from placement.store.search.provider_names import roots_of_providers


def question_for(
    tx: Transaction,
    request: PlannerRequest,
    options: PlannerOptions,
    *,
    composers: Composers | None = None,
) -> PlannerQuestion:
    """Look up what a request names, and return the question for its search.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's options.
        composers: the composers to reuse and add to; new ones by default.

    Raises:
        InvalidAt: the request names a class, trait or level that does not exist.
    """
    composers = composers or Composers()
    prepared = composers.prepared(request, options)
    plan = prepared.plan
    _check_names(tx, request, plan)
    avoided = frozenset(roots_of_providers(tx, request.avoided_trees).values())
    ids = ids_for(tx, plan, read_along=options.cache.read_along if options.cache else None)
    # Rules about several providers are left to composing. What paths ask for may be taken in turn.
    reader = tree_reader(tx, plan, ids, options.cache, adds_up=not request.paths)
    judge = options.judge.in_snapshot(tx) if options.judge else None
    terms = PlannerTerms(options.profile, options.locks, classes_in_families(tx, Ranking(options.profile)), judge)
    cloud = seen_cloud(tx, request, prepared.levels, reader, cache=options.cache)
    return PlannerQuestion(request, prepared, terms, cloud=cloud, steps=composers, avoided=avoided)


def seen_cloud(
    tx: Transaction, request: PlannerRequest, levels: Levels, reader: TreeReader, *, cache: CloudCache | None
) -> SeenCloud:
    """Return what a snapshot shows of the cloud for a request.

    Args:
        tx: the snapshot.
        request: the request.
        levels: its levels.
        reader: takes the trees that can serve it from columns.
        cache: what is cached of the cloud; None reads all of it.
    """
    columns = reader.serving.columns
    trait_ids = tx.names.traits.ids(tx.connection, traits_that_decide(request, levels))
    reader.serving.sets.read_traits(trait_ids.values())
    return SeenCloud(
        reader,
        levels=[trait_ids.get(trait) for trait in levels.traits],
        class_names=tx.names.classes.names(tx.connection, columns.class_ids),
        trait_names={id_: name for name, id_ in trait_ids.items()},
        names=NamesInSnapshot(tx, columns.providers, cache).of_trees,
        kept=kept_in(tx, cache),
    )


def traits_that_decide(request: PlannerRequest, levels: Levels) -> frozenset[str]:
    """Return the traits of levels, and those that rules about single devices or enumerations name."""
    devices = [one.device for one in request.groups if one.device is not None]
    enumerated = [traits for _name, traits in request.enumerated()]
    return frozenset(levels.traits).union(*enumerated, *[one.forbidden.union(*one.required) for one in devices])


def _check_names(tx: Transaction, request: PlannerRequest, plan: Plan) -> None:
    """Refuse the first name that does not exist."""
    names = {name for demand in plan.demands for name, _amount in demand.resources}
    classes = tx.names.classes.ids(tx.connection, names)
    for name in sorted(names - classes.keys()):
        similar = similar_names(name, [one.name for one in all_classes(tx)])
        hint = f" Similar: {', '.join(similar)}." if similar else ""
        raise InvalidAt(_place_of_class(request, name), f"There is no resource class {name}.{hint}")
    asked = list(_traits_of(request))
    traits = tx.names.traits.ids(tx.connection, frozenset().union(*[of_one for _path, of_one in asked]))
    for path, of_one in asked:
        if unknown := sorted(of_one - traits.keys()):
            written = request.written.get((path[1], unknown[0])) if len(path) > 1 else None
            raise InvalidAt(("paths", written) if written else path, f"There is no trait {unknown[0]}.")


def _place_of_class(request: PlannerRequest, resource_class: str) -> tuple[str, ...]:
    """Return the path in the document where a class is first asked for."""
    for one in request.groups:
        if resource_class in one.group.resources:
            written = request.written.get((one.suffix, resource_class))
            return ("paths", written) if written else ("groups", one.suffix, "resources", resource_class)
    names = [name for container in request.all_paths() for name in container.paths]
    named = [name for name in names if name.rpartition("/")[2] == resource_class]
    return ("paths", *named[:1])


def _traits_of(request: PlannerRequest) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Yield the traits named in conditions, with the path of each condition."""
    yield ("root_required",), request.root_required | request.root_forbidden
    for name, traits in request.enumerated():
        yield ("paths", name), traits
    for one in request.groups:
        for group, key in ((one.group, "required"), (one.device, "selector")):
            if group is not None:
                yield ("groups", one.suffix, key), group.forbidden.union(*group.required)
