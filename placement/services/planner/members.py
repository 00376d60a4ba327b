"""Who claims, and what each would hold."""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.candidates.compose.proposals import Proposal
from placement.domain.allocation import Claim
from placement.domain.overlay import Overlay
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.composers import PlannerOptions


@dataclass(frozen=True, slots=True)
class ClaimMember:
    """One consumer that is to hold something.

    Args:
        consumer: whose it is; its allocations are not known yet.
        request: what it wants.
        options: the operator's, for this request.
        replaces: whether it gives up what it holds now, in the same transaction.
    """

    consumer: Claim
    request: PlannerRequest
    options: PlannerOptions
    replaces: bool = False

    @property
    def uuid(self) -> str:
        """The uuid of the consumer."""
        return self.consumer.consumer_uuid


@dataclass(frozen=True, slots=True)
class Draft:
    """What one member would hold.

    Args:
        member: the member.
        proposal: the same, by ids.
        consumer: with its allocations.
        mappings: who serves which group.
        alone: the providers that are to be used by nobody else.
        roots: the roots of the trees that it takes from.
    """

    member: ClaimMember
    proposal: Proposal
    consumer: Claim
    mappings: Mapping[str, tuple[str, ...]]
    alone: frozenset[str]
    roots: frozenset[int]

    def upon(self, overlay: Overlay) -> Overlay:
        """Return an overlay with this on top."""
        return overlay.taking(self.proposal.amounts, held=[lock.provider for lock in self.proposal.locks])
