"""Whether plain allocations are fair, if the operator wants that checked: ``[fair_share] enforce = plain``.

Unlike ``gate``, which judges claims, this is exact: it runs in the writing transaction, and transactions that take the
same class are serialised. Only consumers of the configured types are checked, and only their usage counts; so a
consumer of another type may take over what one of these gives up, and give it back, as when an instance is moved.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from placement.allocators.fair_share import Amounts, FairShares, Overdraft, beyond_entitlement, overdraft
from placement.errors import Conflict
from placement.services.fair_share.shares import Reading, totals_now, usage_of
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.unit_of_work import Transaction
from placement.store.fair_share import lock_classes


class UnfairAllocation(Conflict):
    """The consumers would take more than their fair share."""

    code = "placement.unfair_allocation"


@dataclass(frozen=True, slots=True)
class PlainGate:
    """The gate: the rules of sharing, and the consumer types they apply to."""

    settings: FairShareSettings
    consumer_types: tuple[str, ...]

    @contextmanager
    def watching(self, tx: Transaction, consumers: Collection[str]) -> Iterator[None]:
        """Compare what projects hold before and after the block, and refuse what they took if it is unfair.

        What each project takes counts, for itself and its queues, whatever others give up in the same request.

        Raises:
            UnfairAllocation: with the figures.
        """
        before = usage_of(tx, self.settings, types=self.consumer_types, consumers=consumers)
        yield
        after = usage_of(tx, self.settings, types=self.consumer_types, consumers=consumers)
        taken = {member: _difference(after.get(member, {}), before.get(member, {})) for member in before | after}
        if classes := {name for amounts in taken.values() for name, amount in amounts.items() if amount > 0}:
            self._check(tx, taken, classes)

    def _check(self, tx: Transaction, taken: Mapping[str, Amounts], classes: Collection[str]) -> None:
        """Wait for other transactions that take the same classes, then check everybody's shares."""
        # No other lock is taken after these, so whoever holds one of them never waits: no deadlock.
        lock_classes(tx, tx.names.classes.ids(tx.connection, classes).values())
        by_leaf = {
            self.settings.queues.path_of(member): {name: amounts.get(name, 0) for name in classes}
            for member, amounts in taken.items()
        }
        concerned = replace(self.settings, classes=tuple(sorted(classes)))
        if beyond_entitlement(self._shares(tx, concerned, taken), by_leaf) is None:
            return
        # Who comes first is a matter of all classes.
        found = overdraft(self._shares(tx, self.settings, taken), by_leaf)
        if found is not None:
            raise UnfairAllocation(_reason_of(found))

    def _shares(self, tx: Transaction, settings: FairShareSettings, taken: Mapping[str, Amounts]) -> FairShares:
        reading = Reading(usage_of(tx, settings, types=self.consumer_types), totals_now(tx, settings))
        return reading.shares(settings, others=tuple(taken))


def _difference(after: Amounts, before: Amounts) -> dict[str, int]:
    more = Counter(after)
    more.subtract(before)
    return dict(more)


def _reason_of(found: Overdraft) -> str:
    name, holds = found.resource_class, f"{found.path} would hold {found.holds} {found.resource_class}"
    if found.shortage is None:
        return f"With this, {holds}; its limit is {found.most}."
    left, lacking = found.shortage.left, found.shortage.lacking
    return (
        f"With this, {holds} and is entitled to {found.most}. Of {name}, {left} would be left, and others lack "
        f"{lacking:.4g} of what they are entitled to."
    )
