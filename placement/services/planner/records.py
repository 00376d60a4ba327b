"""What is remembered of a planner claim: the answer as a text, and whether it is still true."""

import json
from collections.abc import Mapping

from placement.domain.allocation import Claim
from placement.store.allocations import allocations_of_consumer
from placement.store.connection.unit_of_work import Transaction


def new_generation(consumer: Claim) -> int:
    """Return the generation of a consumer once it holds what it claims: 1 with its first allocations."""
    return (consumer.consumer_generation or 0) + 1


def written(consumer: Claim, mappings: Mapping[str, tuple[str, ...]]) -> str:
    """Return the answer for one consumer as JSON: what PUT /allocations takes, and whose it is.

    Args:
        consumer: what it holds.
        mappings: who serves which group.
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


def is_held(tx: Transaction, consumer_uuid: str, answer: str) -> bool:
    """Tell whether a consumer holds just what an answer says. It may have been deleted and made again since."""
    rows = allocations_of_consumer(tx, consumer_uuid)
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
    held: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        held.setdefault(row.provider_uuid, {"resources": {}})["resources"][names[row.class_id]] = row.used
    return bool(held == json.loads(answer)["allocations"])
