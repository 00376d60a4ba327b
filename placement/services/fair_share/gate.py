"""An optional, best-effort gate that refuses unfair claims while others wait.

It is not serialised with claims: two concurrent ones may both pass, and usage may be as old as ``keep_s``. Who gets the
last unit of a provider is decided by the claims themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.allocators.entries import Number
from placement.allocators.fair_share import Amounts, Competitor, Decision, FairShares, Task, decide
from placement.errors import Conflict, InvalidAt, Unavailable
from placement.services.fair_share.shares import Where, Wish, counted
from placement.services.fair_share.usage_cache import UNKNOWN, UsageCache, read_usage_by
from placement.services.planner.candidates import planned_candidates
from placement.services.planner.composers import Composers
from placement.services.planner.members import ClaimMember
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction


class UnfairClaim(Conflict):
    """The claim takes more than its fair share while others wait."""

    code = "placement.planner.unfair_claim"


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions that a claim has to meet.

    Args:
        wishes: what others wait for.
        limits: path of a queue -> the largest part of any class that it may hold, 0..1.
        where: the position of all this in the request.
    """

    wishes: Sequence[Wish] = ()
    limits: Mapping[str, Number] | None = None
    where: Where = ()


@dataclass(frozen=True, slots=True)
class FairGate:
    """A gate for ``services.planner.claims`` whose decision was made before the claim's transaction.

    It only raises inside, after a repeated claim has got its earlier answer. Deciding in there would take too long.
    """

    refusal: str | None

    def __call__(self, _tx: Transaction, _members: Sequence[ClaimMember]) -> None:
        """Refuse the claim if it takes more than its fair share.

        Raises:
            UnfairClaim: with the figures.
        """
        if self.refusal is not None:
            raise UnfairClaim(self.refusal)


def fair_gate(database: Database, cache: UsageCache, members: Sequence[ClaimMember], terms: Terms) -> FairGate:
    """Decide about a claim: what its members take beyond what they hold, all together.

    Raises:
        InvalidAt: a class or a queue does not exist, or a wish has no class that counts.
    """
    settings = cache.settings
    _check_limits(terms, settings)
    competitors = [
        Competitor(settings.queues.path_of(wish.member), Task(task, wish.count))
        for wish, task in zip(terms.wishes, counted(database, settings, terms.wishes), strict=True)
    ]
    claimed = claimed_amounts(database, members, settings)
    # What the members hold now, in the place that they leave or from an earlier run of the same claim.
    given_up = read_usage_by(database, settings, [member.uuid for member in members])
    others = (*claimed, *given_up, *[wish.member for wish in terms.wishes])
    shares = cache.reading(database).shares(settings, others=others)
    for claimant, task in _taken_on_top(shares, settings, claimed, given_up):
        decision = decide(shares, claimant, task, competitors=competitors, limits=terms.limits)
        if not decision.allowed:
            return FairGate(_told(decision))
        _use_more(shares, claimant, task)
    return FairGate(None)


def _taken_on_top(
    shares: FairShares,
    settings: FairShareSettings,
    claimed: Mapping[str, Amounts],
    given_up: Mapping[str, Amounts],
) -> list[tuple[str, dict[str, int]]]:
    """Deduct from the usage what the members give up, and return what each leaf takes beyond that."""
    more: dict[str, Counter[str]] = defaultdict(Counter)
    for member, amounts in claimed.items():
        more[settings.queues.path_of(member)].update(amounts)
    for member, amounts in given_up.items():
        more[settings.queues.path_of(member)].subtract(amounts)
    for leaf, amounts in more.items():
        _use_more(shares, leaf, {name: min(0, much) for name, much in amounts.items()})
    return [(leaf, dict(+amounts)) for leaf, amounts in more.items()]


def _use_more(shares: FairShares, leaf: str, more: Amounts) -> None:
    """Add to the usage of a leaf, or deduct from it; what was read may be older than what is deducted."""
    shares.use(leaf, {name: max(0, used + more.get(name, 0)) for name, used in shares.usage(leaf).items()})


def _check_limits(terms: Terms, settings: FairShareSettings) -> None:
    paths = {settings.queues.root, *settings.queues.weights}
    for path in terms.limits or ():
        if path not in paths:
            raise InvalidAt((*terms.where, "limits", path), "No such queue.")


def claimed_amounts(
    database: Database, members: Sequence[ClaimMember], settings: FairShareSettings
) -> dict[str, Amounts]:
    """Map each project (or consumer type) to the amounts it claims of the classes that count.

    Raises:
        InvalidAt: a request names something that does not exist.
    """
    claimed: dict[str, Counter[str]] = defaultdict(Counter)
    composers = Composers()
    for member in members:
        consumer = member.consumer
        name = (consumer.project_id if settings.leaves == "project" else consumer.consumer_type) or UNKNOWN
        claimed[name].update(_taken(database, member, composers))
    return {
        name: {class_: amount for class_, amount in amounts.items() if class_ in settings.classes}
        for name, amounts in claimed.items()
    }


def _taken(database: Database, member: ClaimMember, composers: Composers) -> Mapping[str, int]:
    """Return the amounts that a member takes, however its request expresses them.

    Where the amount depends on the tree ("all", or one for each place), the tree that ranks first decides.
    """
    requested = composers.prepared(member.request, member.options).composer.requested
    if not any(one.everything or one.per_subtree for one in member.request.groups):
        return requested
    try:
        found = planned_candidates(database, replace(member.request, limit=1, explain=False), member.options)
    except Unavailable:
        return requested
    taken: Counter[str] = Counter()
    for candidate in found.candidates[:1]:
        for amounts in candidate.proposal.amounts.values():
            taken.update(amounts)
    return taken or requested


def _told(decision: Decision) -> str:
    if decision.limit is not None:
        limit = decision.limit
        if limit.resource_class is not None:
            name = limit.resource_class
            return f"With the claim, {limit.path} would hold {limit.would_hold} {name}; its limit is {limit.most}."
        return (
            f"With the claim, {limit.path} would hold {limit.would_hold:.4g} of a class; it may hold {limit.most:.4g}."
        )
    assert decision.behind is not None
    node, other = decision.behind.node, decision.behind.other
    first = ", ".join([f"{count} of {leaf}" for leaf, count in sorted(decision.ahead.items())])
    return (
        f"{node.path} has more than its fair share while others wait for what is free: its share by weight is "
        f"{node.weighted_share:.4g}, that of {other.path} is {other.weighted_share:.4g}. "
        f"These tasks come before the claim: {first}."
    )
