"""Why a claim was refused: the sentence, and the explanation that goes with it."""

from collections import Counter
from collections.abc import Sequence

from placement.domain.tree import Overlay
from placement.errors import Conflict
from placement.services.allocation_candidates import Explained
from placement.services.cloud_cache import cloud_in
from placement.services.planner.candidates import explained_plan, why_not, why_nothing
from placement.services.planner.gang import ClaimMember, Drafting, GangPlan
from placement.store.connection.database import Transaction

CUT_OFF = "The search limit was reached; a placement may still exist."


class NoCandidate(Conflict):
    """The request has no candidate now.

    Not ``complete`` if a search was cut off. ``member`` is, in a gang, the uuid of the consumer without a place.
    """

    code = "placement.planner.no_room"

    def __init__(
        self, message: str, explained: Explained | None = None, *, complete: bool = True, member: str | None = None
    ) -> None:
        super().__init__(message)
        self.explained = explained
        self.complete = complete
        self.member = member


def shortage(tx: Transaction, members: Sequence[ClaimMember], overlay: Overlay) -> str | None:
    """Name a class of which all members want more than all providers have left, if any; then no search is needed."""
    requested: Counter[str] = Counter()
    for member in members:
        requested.update(member.request.requested)
    more: Counter[str] = Counter()
    for amounts in overlay.changes.values():
        more.subtract(amounts)
    ids = tx.names.classes.ids(tx.connection, set(requested))
    columns = cloud_in(tx).columns
    for name, amount in sorted(requested.items()):
        free = int(columns.left_in_trees(ids[name]).sum()) + more[name]
        if amount > free:
            return f"They want {amount} {name}, and {free} are left."
    return None


def is_without_place(drafting: Drafting, member: ClaimMember) -> bool:
    """Tell whether a member is known to have no place even alone."""
    name = "no place", *member.options.asked_for(member.request)
    return drafting.overlay.is_empty and bool(cloud_in(drafting.tx).reason_for_nothing(name))


def refusal(drafting: Drafting, placement: GangPlan, lacking: str | None, *, number: int) -> NoCandidate:
    """Return why a request or a gang was refused."""
    assert placement.stuck is not None
    if not placement.drafts:
        return _refusal_alone(drafting, placement.stuck, complete=placement.complete, is_gang=number > 1)
    uuid = placement.stuck.uuid
    if lacking is not None:
        return refusal_of_gang(number, lacking, complete=True, member=uuid)
    sentence = f"Consumer {uuid} found none beside {len(placement.drafts)} others."
    return refusal_of_gang(number, sentence, complete=placement.complete or placement.is_proven, member=uuid)


def refusal_of_gang(number: int, reason: str, *, complete: bool, member: str) -> NoCandidate:
    """Return a refusal of all members of a gang, with the reason in a sentence, and the uuid of the member to name."""
    sentence = f"No place was found for all {number} members together, so none of them was allocated. {reason}".rstrip()
    return NoCandidate(sentence if complete else f"{sentence} {CUT_OFF}", complete=complete, member=member)


def no_place_beside(
    drafting: Drafting, stuck: Sequence[tuple[GangPlan, Sequence[ClaimMember]]]
) -> dict[str, NoCandidate]:
    """Return by uuid why members, of each kind all those behind a stuck one, found no place beside others."""
    reasons: dict[str, NoCandidate] = {}
    for placement, members in stuck:
        number, complete = len(placement.drafts), placement.complete
        if number:
            sentence = f"No place was found beside {number} other member{'' if number == 1 else 's'}."
            reason = NoCandidate(sentence if complete else f"{sentence} {CUT_OFF}", complete=complete)
        else:
            reason = _refusal_alone(drafting, members[0], complete=complete, is_gang=False)
        reasons.update({member.uuid: reason for member in members})
    return reasons


def _refusal_alone(drafting: Drafting, member: ClaimMember, *, complete: bool, is_gang: bool) -> NoCandidate:
    tx, options, question, explained = drafting.tx, member.options, drafting.question(member), None
    is_known, uuid = complete and drafting.overlay.is_empty, member.uuid if is_gang else None
    if member.explains:
        explained = why_nothing(tx, question, options) if is_known else explained_plan(tx, question, options)
    if is_known:
        name = "no place", *options.asked_for(member.request)
        cloud_in(tx).note_nothing(name, reason=True, lasts=not options.profile.filters)
    if explained is None or (not complete and explained.explanation.cause is None):
        sentence = "No place was found, so nothing was allocated."
        return NoCandidate(sentence if complete else f"{sentence} {CUT_OFF}", explained, complete=complete, member=uuid)
    alone = f" Consumer {member.uuid} has no place even alone." if is_gang else ""
    left_out = " The trees to avoid were left out." if member.request.avoided_trees else ""
    return NoCandidate(f"Nothing was allocated.{alone} {why_not(explained)}{left_out}", explained, member=uuid)
