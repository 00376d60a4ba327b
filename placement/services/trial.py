"""What would a request get, and why not more? The use case behind the console's page for trying requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.packing import DeviceJudge
from placement.candidates.scores import Score
from placement.domain.candidate_request import CandidateRequest
from placement.services.allocation_candidates import Answer, Candidate, Plan, Ranking, SearchOptions, answer_to
from placement.services.explain import Explained, explained
from placement.services.packing import Packer
from placement.services.scores import forest_of
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.search.facts import Named, named_providers

__all__ = ["CandidateInDetail", "Named", "Showing", "Trial", "trial"]


@dataclass(frozen=True, slots=True)
class Showing:
    """What is wanted of a trial.

    Args:
        first, count: the candidates to look at closely, counted from 0.
        profile: what they are scored by; None for no scores.
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
    """A candidate looked at closely.

    Args:
        root: the tree it was found in.
        taken: provider -> resource class -> amount; a provider that only serves a group without resources has none.
        groups: provider -> suffixes of the groups it serves, ``""`` for the unsuffixed one.
        score: how good it is, if that was asked for.
    """

    root: int
    taken: Mapping[int, Mapping[str, int]]
    groups: Mapping[int, Sequence[str]]
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """All candidates, some of them looked at closely, and how the providers of their trees are called, by id."""

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
    packer: Packer | None,
    showing: Showing,
) -> Trial:
    """Find the candidates of a request and look at some of them, all as of one moment.

    Raises:
        Invalid: a resource class or trait does not exist.
        OutOfSteps: the search ran out of steps before it found anything.
    """
    answer = answer_to(tx, request, options, ranking, packer=packer)
    if not answer.candidates:
        profile = ranking.profile if ranking else None
        return Trial(
            answer, (), {}, explained(tx, request, locks=options.locks, profile=profile) if showing.explains else None
        )
    shown = _served(answer, showing, packer.judge_in(tx) if packer else None)
    members = answer.providers.members
    roots = {members[provider].root_id for served in shown for provider in served.taken}
    names = named_providers(tx, [member.id for member in members.values() if member.root_id in roots])
    return Trial(answer, shown, names)


def _served(answer: Answer, showing: Showing, judge: DeviceJudge | None) -> list[CandidateInDetail]:
    chosen = answer.candidates[showing.first : showing.first + showing.count]
    served = [_laid_out(answer.plan, candidate) for candidate in chosen]
    if showing.profile is None:
        return served
    forest = forest_of(answer.providers, showing.profile, showing.levels or {}, judge)
    return [replace(each, score=forest.score(_amounts(each))) for each in served]


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


def _amounts(served: CandidateInDetail) -> dict[int, Mapping[str, int]]:
    """Return what counts in a score: who only serves a group without resources gives nothing."""
    return {provider: amounts for provider, amounts in served.taken.items() if amounts}
