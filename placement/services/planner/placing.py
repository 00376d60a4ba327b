"""Finds a place for one consumer and allocates it, inside a unit of work.

Planners would all choose the best tree and take it from each other. So the root of a tree is locked before it is
planned in, best first; a tree that somebody else is planning in is passed over as long as there is another. Inside a
locked tree the plan is made again from what is there now. Only plain writers can still be faster; what they took shows
when the providers are locked, as for every allocation.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from placement.candidates.compose.proposals import Proposal
from placement.domain.allocation import Claim
from placement.domain.capacity import DoesNotFit, check_fit
from placement.domain.planner_request import PlannerRequest
from placement.services import claims as claiming
from placement.services.planner.composers import Composers, PlannerOptions, Prepared
from placement.services.planner.planning import Planning
from placement.services.planner.records import Claimed
from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import lock_if_free, lock_providers

T = TypeVar("T")

TRIES_IN_A_TREE = 3

STEPS_FOR_A_GROUP = 300
"""What a group adds to the cost of a tree in which nothing is found, beside the search: reading it, and the like."""

ExhaustedTrees = dict[int, bool]
"""The roots of trees where nothing was found, and whether it is certain that there is nothing."""


@dataclass(frozen=True, slots=True)
class ClaimMember:
    """One consumer that is to hold something.

    Args:
        consumer: whose it is; its allocations are not known yet.
        request: what it wants.
        options: the operator's, for this request.
    """

    consumer: Claim
    request: PlannerRequest
    options: PlannerOptions


class Overtaken(Exception):
    """The consumer has been claimed for meanwhile, perhaps by the same claim: roll back and look."""


class Placing:
    """The places of one member.

    Args:
        tx: the transaction.
        member: who wants what.
        composers: those of the claim.
        of_gang: whether there are other members. Each may go through the whole cloud, so trees that were of no use cost
            steps then, and where none are left no further ones are looked into.
        most: how many places of a tree are wanted.
    """

    def __init__(
        self, tx: Transaction, member: ClaimMember, composers: Composers, *, of_gang: bool, most: int = 1
    ) -> None:
        self._tx = tx
        self._member = member
        self._most = most
        self._budget = composers.budget if of_gang else None
        # One more than wanted tells whether there are more.
        request = replace(member.request, per_tree=most + 1) if most > 1 else member.request
        self._planning = Planning(tx, request, member.options, composers)
        self.exhausted: ExhaustedTrees = {}
        """The trees where nothing was found."""
        self.skipped_locked_tree = False
        """Whether somebody else was planning in a tree."""
        self.has_seen_all = True
        """Whether all trees were looked into, and none had more places than were tried."""

    @property
    def prepared(self) -> Prepared:
        """What the member wants: the same object for all that want the same."""
        return self._planning.prepared

    def roots(self) -> Iterator[int]:
        """Yield the roots of trees where there may be a place, the most promising first."""
        return self._planning.roots()

    @property
    def is_complete(self) -> bool:
        """Whether no search for places was cut off."""
        return self.has_seen_all and self._planning.complete and all(self.exhausted.values())

    def best(self, exhausted: ExhaustedTrees) -> Claimed | None:
        """Allocate the best that is there, None if nothing was found.

        Args:
            exhausted: trees that are left out, because who wanted the same has found nothing there; further ones are
                added.
        """
        self.exhausted = exhausted
        for root in self._locked(root for root in self.roots() if root not in exhausted):
            for _try in range(TRIES_IN_A_TREE):
                proposal = next(self._planning.proposals(only=root), None)
                if proposal is None:
                    exhausted[root] = self._planning.complete
                    break
                try:
                    return self._allocated(proposal)
                except DoesNotFit:
                    continue
        return None

    def first_that(self, serves: Callable[[int, Claimed], T | None], roots: Iterable[int]) -> T | None:
        """Allocate the first place that serves, and return what it serves with; None if none does.

        Args:
            serves: told the root of the tree and what is allocated; for None that is taken back.
            roots: the trees to look into.
        """
        for root in self._locked(roots):
            proposals = list(islice(self._planning.proposals(only=root), self._most + 1))
            self.has_seen_all = self.has_seen_all and len(proposals) <= self._most
            if not proposals:
                self.exhausted[root] = self._planning.complete
            for proposal in proposals[: self._most]:
                found = self._served(root, proposal, serves)
                if found is not None:
                    return found
        return None

    def _served(self, root: int, proposal: Proposal, serves: Callable[[int, Claimed], T | None]) -> T | None:
        with self._tx.connection.begin_nested() as savepoint:
            try:
                found = serves(root, self._allocated(proposal))
            except DoesNotFit:
                found = None
            if found is None:
                savepoint.rollback()
        return found

    def _locked(self, roots: Iterable[int]) -> Iterator[int]:
        """Yield roots as soon as they are locked. Who asks for another one has found nothing in the last."""
        busy = []
        for root in roots:
            if lock_if_free(self._tx, root):
                yield root
                if not self._goes_on():
                    return
            else:
                self.skipped_locked_tree = True
                busy.append(root)
        if busy:
            # Everything else is full: wait for one of those that others are planning in. Not all for the same one.
            root = random.choice(busy)  # noqa: S311 - spreads load, keeps no secret
            lock_providers(self._tx, [root])
            yield root

    def _goes_on(self) -> bool:
        """Tell whether to look into another tree after one that was of no use."""
        if self._budget is None:
            return True
        self._budget.take(STEPS_FOR_A_GROUP * len(self.prepared.plan.slots))
        if self._budget.is_used_up:
            self.has_seen_all = False
        return not self._budget.is_used_up

    def _allocated(self, proposal: Proposal) -> Claimed:
        """Allocate a proposal.

        Raises:
            DoesNotFit: a plain writer was faster; nothing has been written.
            Overtaken: somebody else has made the consumer.
        """
        members = self._planning.summaries.members
        allocations = {members[provider].uuid: amounts for provider, amounts in proposal.amounts.items()}
        wanted = replace(self._member.consumer, allocations=allocations)
        alone = self._planning.inside([lock.provider for lock in proposal.locks])
        situation = claiming.meet(self._tx, [wanted], alone)
        if situation.consumers:
            raise Overtaken
        claiming.check([wanted], situation)
        supplies = claiming.supplies(self._tx, situation)
        for place, supply in supplies.items():
            if place[0] in alone and supply.used:
                raise DoesNotFit(place, "'{1}' of resource provider '{0}' is in use.")
        check_fit(wanted.portions(), supplies, {})
        claiming.carry_out(self._tx, [wanted], situation, supplies)
        mappings = {
            suffix: tuple(members[provider].uuid for provider in providers)
            for suffix, providers in proposal.mappings.items()
        }
        return Claimed(wanted, mappings)
