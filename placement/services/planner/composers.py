"""The composers of requests, prepared once and reused for equal requests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from placement.allocators.budget import Budget
from placement.allocators.devices import STEPS
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.paths import PathComposer, UnknownLevel
from placement.candidates.planner.kept_proposals import KeptProposals
from placement.candidates.planner.question import Prepared
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan, plan_for
from placement.errors import InvalidAt
from placement.services.cloud_cache import CloudCache
from placement.services.fragmentation import FragmentationJudge


@dataclass(frozen=True, slots=True)
class PlannerOptions:
    """The operator's settings.

    Args:
        profile: the profile in force for a request.
        levels: name of a level -> trait of its places, outermost first.
        locks: level -> lock class.
        judge: scores fragmentation, if the profile does.
        cache: what is cached of the cloud, and of what earlier requests found in hosts; None for nothing.
    """

    profile: RankingProfile
    levels: Mapping[str, str]
    locks: Mapping[str, str]
    judge: FragmentationJudge | None = None
    cache: CloudCache | None = None

    def levels_for(self, request: PlannerRequest) -> Levels:
        """Return the levels of a request, with traits that it names itself as the innermost ones."""
        own = [level for level in dict.fromkeys(request.levels()) if level not in self.levels]
        further = [trait for trait in own if trait not in self.levels.values()]
        return Levels((*self.levels, *further), (*self.levels.values(), *further))

    def asked_for(self, request: PlannerRequest) -> tuple[object, ...]:
        """Return all that decides whether there is a place for a request, besides the cloud."""
        return request, self.profile, self.levels, self.locks

    def kept_for(self, request: PlannerRequest) -> KeptProposals | None:
        """Return what is kept for a request; None if fragmentation counts, which depends on the rest of the cloud."""
        if self.cache is None or self.judge is not None:
            return None
        # Requests that are equal may be written differently, which merely finds less.
        return KeptProposals(self.cache.derived, repr((request, self.levels_for(request), sorted(self.locks.items()))))


STEPS_PER_REQUEST = 4 * STEPS
"""The step budget for all searches of one client request, for all members of a gang."""


class Composers:
    """The composers of one client request, and their budget.

    Args:
        steps: the budget in all.
    """

    def __init__(self, steps: int = STEPS_PER_REQUEST) -> None:
        self.budget = Budget(steps)
        """The budget of the request as a whole."""
        self.budget_now = self.budget
        """The budget of the member that is being placed; without members, the whole one."""
        self._known: list[tuple[PlannerRequest, PlannerOptions, Prepared]] = []

    def allot(self, *, among: int) -> None:
        """Allot the next of ``among`` members an equal part of the steps left; what it leaves goes to later ones."""
        self.budget_now = self.budget.child(self.budget.left // among)

    def prepared(self, request: PlannerRequest, options: PlannerOptions) -> Prepared:
        """Return a request with its memoising composer, the same for equal requests.

        Raises:
            InvalidAt: the request names a level that does not exist.
        """
        for *known, prepared in self._known:
            if known == [request, options]:
                return prepared
        prepared = self._of_paths(request, options) if request.paths else self._of_groups(request, options)
        self._known.append((request, options, prepared))
        return prepared

    def _of_groups(self, request: PlannerRequest, options: PlannerOptions) -> Prepared:
        plan, levels = plan_with_everything(request), options.levels_for(request)
        judge = options.judge.latest_device_judge if options.judge else None
        composer = DeviceComposer(request, plan, levels, locks=options.locks, judge=judge)
        return Prepared(plan, levels, composer, kept=options.kept_for(request))

    def _of_paths(self, request: PlannerRequest, options: PlannerOptions) -> Prepared:
        levels = options.levels_for(request)
        try:
            composer = PathComposer(request, levels, locks=options.locks)
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
        plan = plan_for(composer.plain())
        return Prepared(plan, levels, composer, composer.parts(), options.kept_for(request))


def plan_with_everything(request: PlannerRequest) -> Plan:
    """Return the plan of a request of groups, with one more demand for each group that wants all providers."""
    plan = plan_for(request.plain)
    demands = {slot.suffix: plan.demands[slot.demand] for slot in plan.slots}
    every = [
        replace(demands[one.suffix], group=one.group, ignores_usage=True) for one in request.groups if one.everything
    ]
    return replace(plan, demands=(*plan.demands, *every))
