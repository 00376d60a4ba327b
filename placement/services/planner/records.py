"""Answers to past claims: the text, and whether it still holds."""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from placement.domain.allocation import Claim
from placement.store.allocations import held_by
from placement.store.connection.unit_of_work import Transaction
from placement.store.planner_claims import remembered_claims
from placement.store.search.provider_names import named_providers


def new_generation(consumer: Claim) -> int:
    """Return a consumer's generation once it holds what it claims: 1 with its first allocations."""
    return (consumer.consumer_generation or 0) + 1


def written(consumer: Claim, mappings: Mapping[str, tuple[str, ...]]) -> str:
    """Return the answer for one consumer as JSON: its owner, and what PUT /allocations takes.

    Args:
        consumer: the consumer with its allocations.
        mappings: the providers that serve each group.
    """
    document = {
        "consumer": {
            "uuid": consumer.consumer_uuid,
            "project_id": consumer.project_id,
            "user_id": consumer.user_id,
            "consumer_type": consumer.consumer_type,
            "consumer_generation": new_generation(consumer),
        },
        "allocations": {provider: {"resources": dict(of)} for provider, of in consumer.allocations.items()},
        "mappings": mappings,
    }
    return json.dumps(document)


def known_answers(tx: Transaction, generations: Mapping[str, int], digest: str) -> dict[str, str]:
    """Return the earlier answers to a claim, for consumers that still hold exactly that; they may have been recreated.

    Args:
        tx: the transaction.
        generations: those of the existing consumers, by uuid.
        digest: identifies the claim.
    """
    remembered = remembered_claims(tx, generations)
    same = [
        one for one in remembered.values() if (one.digest, one.generation) == (digest, generations[one.consumer_uuid])
    ]
    held = held_by(tx, [one.consumer_uuid for one in same]) if same else []
    providers = named_providers(tx, {row.provider_id for row in held})
    names = tx.names.classes.names(tx.connection, {row.class_id for row in held})
    now: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: {"resources": {}}))
    for row in held:
        now[row.consumer_uuid][providers[row.provider_id].uuid]["resources"][names[row.class_id]] = row.used
    return {
        one.consumer_uuid: one.answer for one in same if json.loads(one.answer)["allocations"] == now[one.consumer_uuid]
    }
