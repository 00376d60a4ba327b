"""Try out a request and explain an empty answer: the use case behind the console's page for that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking
from placement.candidates.scores import Score, TakenRows
from placement.candidates.search import Candidate
from placement.domain.search_plan import CandidateRequest, Plan
from placement.services.allocation_candidates import Answer, SearchOptions, answer_to
from placement.services.explain import Explained, explained
from placement.services.fragmentation import FragmentationJudge
from placement.services.scores import request_columns, scored
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.search.names import Named, named_providers


@dataclass(frozen=True, slots=True)
class Showing:
    """What a trial should show.

    Args:
        first, count: the candidates to show in detail, counted from 0.
        profile: the profile to score them by; None for no scores.
        levels: name of a level -> trait of its places, outermost first.
        explains: whether to explain an empty answer.
    """

    first: int = 0
    count: int = 10
    profile: RankingProfile | None = None
    levels: Mapping[str, str] | None = None
    explains: bool = False


@dataclass(frozen=True, slots=True)
class CandidateInDetail:
    """A candidate in detail.

    Args:
        root: the tree it was found in.
        taken: provider -> resource class -> amount; empty for a provider that only serves groups without resources.
        groups: provider -> suffixes of the groups it serves, ``""`` for the unsuffixed one.
        score: its score, if requested.
    """

    root: int
    taken: Mapping[int, Mapping[str, int]]
    groups: Mapping[int, Sequence[str]]
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """All candidates, some of them in detail, and the names of the providers in their trees, by id."""

    answer: Answer
    shown: Sequence[CandidateInDetail]
    names: Mapping[int, Named]
    explained: Explained | None = None


@reads_anywhere
def trial(
    tx: Transaction,
    request: CandidateRequest,
    *,
    options: SearchOptions,
    ranking: Ranking | None,
    judge: FragmentationJudge | None,
    showing: Showing,
) -> Trial:
    """Find the candidates for a request and look at some of them in detail, in one snapshot.

    Raises:
        Invalid: a resource class or trait does not exist.
        OutOfSteps: the search ran out of steps before it found anything.
    """
    answer = answer_to(tx, request, options, ranking, judge=judge)
    if not answer.candidates:
        profile = ranking.profile if ranking else None
        return Trial(
            answer, (), {}, explained(tx, request, locks=options.locks, profile=profile) if showing.explains else None
        )
    chosen = answer.candidates[showing.first : showing.first + showing.count]
    shown = _scored(tx, [_laid_out(answer.plan, candidate) for candidate in chosen], showing, judge=judge)
    members = answer.providers.members
    roots = {members[provider].root_id for candidate in shown for provider in candidate.taken}
    names = named_providers(tx, [member.id for member in members.values() if member.root_id in roots])
    return Trial(answer, shown, names)


def _scored(
    tx: Transaction,
    served: list[CandidateInDetail],
    showing: Showing,
    *,
    judge: FragmentationJudge | None,
) -> list[CandidateInDetail]:
    """Return candidates with their scores, if these are to be shown."""
    if showing.profile is None:
        return served
    # A provider that only serves groups without resources gives nothing.
    taken = [{provider: amounts for provider, amounts in candidate.taken.items() if amounts} for candidate in served]
    columns = request_columns(tx, TakenRows.from_requests(taken), showing.levels or {})
    scores = scored(tx, columns, showing.profile, judge)
    return [replace(candidate, score=request.score) for candidate, request in zip(served, scores, strict=True)]


def _laid_out(plan: Plan, candidate: Candidate) -> CandidateInDetail:
    root, choice = candidate
    taken: dict[int, dict[str, int]] = {}
    groups: dict[int, list[str]] = {}
    for slot, provider in zip(plan.slots, choice, strict=True):
        amounts = taken.setdefault(provider, {})
        for name, amount in slot.resources:
            amounts[name] = amounts.get(name, 0) + amount
        suffixes = groups.setdefault(provider, [])
        if slot.suffix not in suffixes:
            suffixes.append(slot.suffix)
    return CandidateInDetail(root, taken, groups)
