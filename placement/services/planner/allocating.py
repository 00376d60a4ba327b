"""Write the allocations of a claim if they still fit: the short part of a claim, and the only one that locks.

The plan was made on a snapshot. Every provider it takes from is locked first, in the order of ids, as for any
allocation; then either everything still fits or nothing is written.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from placement.domain.allocation import StockName
from placement.domain.capacity import DoesNotFit, Supply, check_fit
from placement.services import claims as claiming
from placement.services.claims import Situation
from placement.services.planner.members import Draft
from placement.services.planner.records import new_generation, written
from placement.store.connection.unit_of_work import Transaction, writes
from placement.store.planner_claims import RememberedClaim, remember_claims, sweep_now_and_then


class Outdated(Exception):
    """The plan is stale: somebody else has taken from it, or claimed for one of its consumers. Nothing was written."""


@writes
def allocate(tx: Transaction, drafts: Sequence[Draft], digest: str) -> dict[str, str]:
    """Allocate each member's draft; return the answers by consumer uuid.

    Raises:
        Outdated: the drafts no longer fit.
        ConcurrentUpdate: a consumer to be replaced is at another generation.
    """
    claims = [draft.consumer for draft in drafts]
    situation = claiming.meet(tx, claims, frozenset[str]().union(*[draft.alone for draft in drafts]))
    _check_names(drafts, situation)
    claiming.check(claims, situation)
    supplies = claiming.supplies(tx, situation)
    _check_alone(tx, drafts, situation, supplies)
    try:
        check_fit([portion for claim in claims for portion in claim.portions()], supplies, situation.freed)
    except DoesNotFit as reason:
        raise Outdated from reason
    claiming.carry_out(tx, claims, situation, supplies)
    answers = {draft.member.uuid: written(draft.consumer, draft.mappings) for draft in drafts}
    generations = {draft.member.uuid: new_generation(draft.consumer) for draft in drafts}
    remember_claims(
        tx, [RememberedClaim(uuid, digest, generations[uuid], text) for uuid, text in sorted(answers.items())]
    )
    sweep_now_and_then(tx)
    return answers


def _check_names(drafts: Sequence[Draft], situation: Situation) -> None:
    """Refuse drafts if one of their consumers has been created since, or a provider or class deleted."""
    new = [draft.member.uuid for draft in drafts if not draft.member.replaces]
    named = [name for draft in drafts for name, _amount in draft.consumer.portions()]
    if not situation.consumers.keys().isdisjoint(new):
        raise Outdated
    if not {provider for provider, _class in named} <= situation.providers.keys():
        raise Outdated
    if not {name for _provider, name in named} <= situation.class_ids.keys():
        raise Outdated


def _check_alone(
    tx: Transaction, drafts: Sequence[Draft], situation: Situation, supplies: Mapping[StockName, Supply]
) -> None:
    """Refuse drafts if anybody else uses what a member wants exclusively."""
    alone = frozenset[str]().union(*[draft.alone for draft in drafts])
    if not alone:
        return
    given_up = _given_up(tx, situation)
    if any(
        supply.used > given_up[provider, name] for (provider, name), supply in supplies.items() if provider in alone
    ):
        raise Outdated


def _given_up(tx: Transaction, situation: Situation) -> Counter[StockName]:
    """Return what the consumers hold now and give up."""
    uuids = {provider.id: provider.uuid for provider in situation.providers.values()}
    names = tx.names.classes.names(tx.connection, {row.class_id for row in situation.held})
    given_up: Counter[StockName] = Counter()
    for row in situation.held:
        if row.provider_id in uuids:
            given_up[uuids[row.provider_id], names[row.class_id]] += row.used
    return given_up
