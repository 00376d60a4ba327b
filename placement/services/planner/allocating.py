"""Write the allocations of a claim if they still fit: the short part of a claim, and the only one that locks.

The plan was made on a snapshot. Every provider it takes from is locked first, in the order of ids, as for any
allocation; then either everything still fits or nothing is written.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from placement.candidates.planner.question import wanted_of
from placement.domain.allocation import Claim, StockName
from placement.domain.inventory import DoesNotFit, Supply, check_fit
from placement.domain.search_plan import plan_for
from placement.services import claims as claiming
from placement.services.claims import Situation
from placement.services.planner.gang import Draft
from placement.store.allocations import held_by
from placement.store.connection.database import Database, Transaction, writes
from placement.store.planner_rows import RememberedClaim, remember_claims, remembered_claims, sweep_now_and_then
from placement.store.search.names import named_providers


class Outdated(Exception):
    """The plan is stale: somebody else has taken from it, or claimed for one of its consumers. Nothing was written."""


def allocate(database: Database, drafts: Sequence[Draft], digest: str) -> dict[str, str]:
    """Allocate each member's draft, learn from that what work to expect, and return the answers by consumer uuid.

    Raises:
        Outdated: the drafts no longer fit.
        ConcurrentUpdate: a consumer to be replaced is at another generation.
    """
    answers = _allocated(database, drafts, digest)
    for draft in drafts:
        judge, request = draft.member.options.judge, draft.member.request
        if judge is not None and not draft.member.replaces:
            if not request.paths:
                judge.note_asked(wanted_of(request, plan_for(request.plain)))
            judge.note_allocated(draft.consumer.allocations.values())
    return answers


@writes
def _allocated(tx: Transaction, drafts: Sequence[Draft], digest: str) -> dict[str, str]:
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


def new_generation(consumer: Claim) -> int:
    """Return a consumer's generation once it holds what it claims: 1 with its first allocations."""
    return (consumer.consumer_generation or 0) + 1


def written(consumer: Claim, mappings: Mapping[str, tuple[str, ...]]) -> str:
    """Return the answer for one consumer as JSON: its owner, and what PUT /allocations takes."""
    document = {
        "consumer": {
            "uuid": consumer.consumer_uuid,
            "project_id": consumer.project_id,
            "user_id": consumer.user_id,
            "consumer_type": consumer.consumer_type,
            "consumer_generation": new_generation(consumer),
        },
        "allocations": {provider: {"resources": dict(amounts)} for provider, amounts in consumer.allocations.items()},
        "mappings": mappings,
    }
    return json.dumps(document)


def known_answers(tx: Transaction, generations: Mapping[str, int], digest: str) -> dict[str, str]:
    """Return the earlier answers to a claim, for consumers that hold exactly that; they may be new ones."""
    remembered = remembered_claims(tx, generations)
    claims = [claim for claim in remembered.values() if claim.digest == digest]
    same = [claim for claim in claims if claim.generation == generations[claim.consumer_uuid]]
    held = held_by(tx, [claim.consumer_uuid for claim in same]) if same else []
    providers = named_providers(tx, {row.provider_id for row in held})
    names = tx.names.classes.names(tx.connection, {row.class_id for row in held})
    now: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: {"resources": {}}))
    for row in held:
        now[row.consumer_uuid][providers[row.provider_id].uuid]["resources"][names[row.class_id]] = row.used
    return {
        claim.consumer_uuid: claim.answer
        for claim in same
        if json.loads(claim.answer)["allocations"] == now[claim.consumer_uuid]
    }
