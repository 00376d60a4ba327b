"""Entitlements for making room on a host: the classes that matter differ from host to host."""

from collections.abc import Mapping

from placement.allocators.fair_share.entitlement import ClaimRights
from placement.allocators.fair_share.nodes import ratio
from placement.allocators.fair_share.tenants import Need
from placement.services.fair_share.giving_back import Reclaim, ReclaimSituation


class HostRights:
    """The rights of a claimant, by host.

    The classes that matter are those that the whole cloud lacks, the dominant one of the claim, and those missing on
    the host. Nobody can have too much of what is plentiful.

    Args:
        situation: the shares that the claim meets.
        claim: the claim.
    """

    def __init__(self, situation: ReclaimSituation, claim: Reclaim) -> None:
        self._situation = situation
        self._claim = claim
        self._by_classes: dict[tuple[str, ...], ClaimRights] = {}
        lacking = ClaimRights(situation.shares, situation.claimant, claim.task, waiting=claim.waiting).classes
        totals = situation.shares.totals()
        dominant = max(claim.task, key=lambda name: (ratio(claim.task[name], totals[name]), name))
        self._always = {*lacking, dominant}
        self.anywhere = self.of({})
        """The rights for the classes that matter on every host."""

    def of(self, missing: Mapping[Need, int]) -> ClaimRights:
        """Return the rights for a host, given what is missing there."""
        there = {name for name in self._claim.task if missing.get(name, 0) > 0}
        classes = tuple(sorted(self._always | there))
        if classes not in self._by_classes:
            situation, claim = self._situation, self._claim
            self._by_classes[classes] = ClaimRights(
                situation.shares, situation.claimant, claim.task, waiting=claim.waiting, classes=classes
            )
        return self._by_classes[classes]
