"""Reclaiming on a project's page: which consumers of other projects would give back so that a claim fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from placement.api.call import Call
from placement.api.filters import parse_resources
from placement.api.planner.fair_share import RULE
from placement.errors import Invalid
from placement.services.fair_share.giving_back import ReclaimOptions, reclaim, reclaim_of
from placement.services.fair_share.shares import Wish

MAX_SHOWN = 200


class GivingConsumer(NamedTuple):
    """A consumer that gives back what it holds of the classes that count, with its project."""

    uuid: str
    project: str
    held: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReclaimAnswer:
    """The form's content and the result; ``feasible`` is None if nothing was asked or ``fault`` says what is wrong.

    Args:
        claim: what is claimed, as in the form.
        feasible: whether the claim fits afterwards.
        complete: whether all choices were considered.
        given: the consumers that give back, as few as possible; none if the claim fits already.
        count: how many they are.
        fault: what is wrong with the claim.
    """

    claim: str
    feasible: bool | None = None
    complete: bool = True
    given: Sequence[GivingConsumer] = ()
    count: int = 0
    fault: str = ""


def reclaimed(call: Call, project: str, lacking: Mapping[str, float]) -> ReclaimAnswer | None:
    """Return who would give back for the claim in the address; None if the caller may not ask.

    Reads nothing unless something is claimed: reading all holdings of a large cloud takes seconds.
    """
    if not call.is_allowed(f"{RULE}:reclaim"):
        return None
    claim = call.request.args.get("claim", "").strip()
    if not claim:
        return ReclaimAnswer(",".join([f"{name}:{int(amount)}" for name, amount in lacking.items() if amount >= 1]))
    settings = call.server.settings.planner.fair_share
    try:
        wanted = reclaim_of(call.database, settings, Wish(project, parse_resources(claim)), ())
    except Invalid as error:
        return ReclaimAnswer(claim, fault=error.message)
    found = reclaim(call.database, settings, wanted, ReclaimOptions({}))
    held = found.giving.given_back
    given = [GivingConsumer(one.name, found.members[one.leaf], one.amounts) for one in held[:MAX_SHOWN]]
    return ReclaimAnswer(claim, found.giving.feasible, found.giving.complete, given, len(held))
