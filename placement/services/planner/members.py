"""The members of a claim, and what each would hold."""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.candidates.compose.proposals import Proposal
from placement.domain.allocation import Claim
from placement.domain.overlay import Overlay
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.composers import PlannerOptions


@dataclass(frozen=True, slots=True)
class ClaimMember:
    """A consumer to be allocated for.

    Args:
        consumer: the consumer and its owner; its allocations are not known yet.
        request: what it wants.
        options: the operator's options for the request.
        replaces: whether it gives up its current allocations in the same transaction.
        explains: whether to find out why, if it has no place even alone.
    """

    consumer: Claim
    request: PlannerRequest
    options: PlannerOptions
    replaces: bool = False
    explains: bool = True

    @property
    def uuid(self) -> str:
        """The uuid of the consumer."""
        return self.consumer.consumer_uuid


@dataclass(frozen=True, slots=True)
class Draft:
    """What one member would hold.

    Args:
        member: the member.
        proposal: the proposal, by ids.
        consumer: the consumer with its allocations.
        mappings: the providers that serve each group.
        alone: the providers that nobody else may use.
        roots: the roots of the trees that it takes from.
    """

    member: ClaimMember
    proposal: Proposal
    consumer: Claim
    mappings: Mapping[str, tuple[str, ...]]
    alone: frozenset[str]
    roots: frozenset[int]

    def upon(self, overlay: Overlay) -> Overlay:
        """Return an overlay with this draft on top."""
        return overlay.taking(self.proposal.amounts, held=[lock.provider for lock in self.proposal.locks])
