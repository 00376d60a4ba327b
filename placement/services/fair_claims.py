"""Whether a claim is fair while others wait: an optional gate, best effort, in front of a claim.

It is not serialised with claims. Two that are made at once may both be let through, and what is used may be as old as
``keep_s`` says; who may take the last unit of a provider is decided by the claim itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.allocators.entries import Number
from placement.allocators.fair_share import Competitor, Decision, Task, decide
from placement.errors import Conflict, InvalidAt
from placement.services.fair_share import Where, Wish, counted
from placement.services.kept_usage import KeptUsage
from placement.store.database import Database


class UnfairClaim(Conflict):
    """The claim takes more than its fair share while others wait."""

    code = "placement.planner.unfair_claim"


@dataclass(frozen=True, slots=True)
class Gate:
    """What a claim has to stand.

    Args:
        wishes: what others wait for.
        limits: path of a queue -> the largest part of any class that it may hold, 0..1.
        where: where that stands in the request.
    """

    wishes: Sequence[Wish] = ()
    limits: Mapping[str, Number] | None = None
    where: Where = ()


def pass_gate(database: Database, kept: KeptUsage, claim: Wish, gate: Gate) -> None:
    """Refuse a claim that takes more than its fair share.

    Raises:
        UnfairClaim: with the numbers.
        InvalidAt: a class or a queue does not exist, or somebody waits for nothing that counts.
    """
    settings = kept.settings
    paths = {settings.queues.root, *settings.queues.weights}
    for path in gate.limits or ():
        if path not in paths:
            raise InvalidAt((*gate.where, "limits", path), "There is no such queue.")
    task = {name: amount for name, amount in claim.resources.items() if name in settings.classes}
    competitors = [
        Competitor(settings.queues.path_of(wish.member), Task(amounts, wish.count))
        for wish, amounts in zip(gate.wishes, counted(database, settings, gate.wishes), strict=True)
    ]
    if not task:
        return
    shares = kept.reading(database).shares(settings, others=(claim.member, *[wish.member for wish in gate.wishes]))
    claimant = settings.queues.path_of(claim.member)
    decision = decide(shares, claimant, task, competitors=competitors, limits=gate.limits)
    if not decision.allowed:
        raise UnfairClaim(_told(decision))


def _told(decision: Decision) -> str:
    if decision.limit is not None:
        limit = decision.limit
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
