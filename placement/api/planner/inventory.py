"""GET /planner/v1/inventory: providers with inventory, usage, traits and aggregates, in one answer."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from flask import Response

from placement.api.call import JSON, Call, answer_in_pieces
from placement.api.inventories import AMOUNTS
from placement.api.resource_providers import FILTERS, provider_filter
from placement.api.routing import planner_route
from placement.services.bulk_read import read_inventory
from placement.store.bulk_read import BulkRead

PROVIDERS_AT_ONCE = 500


def list_inventory(call: Call) -> Response:
    """Return everything about the providers that match the filters of GET /resource_providers.

    The data is one snapshot, read in a few statements; it is serialised while it is sent.
    """
    call.query.check(FILTERS.at(call.version))
    cloud = read_inventory(call.database, provider_filter(call.query, call.version))
    response = answer_in_pieces(call.request, _text(cloud), JSON)
    if cloud.journal is not None and call.server.settings.journal.enabled:
        response.headers["x-placement-journal"] = cloud.journal.text
    return response


def _text(cloud: BulkRead) -> Iterator[bytes]:
    yield b'{"providers":['
    for start in range(0, len(cloud.providers), PROVIDERS_AT_ONCE):
        portion = _shown(cloud, cloud.providers[start : start + PROVIDERS_AT_ONCE])
        yield (b"," if start else b"") + orjson.dumps(portion)[1:-1]
    yield b"]}"


def _shown(cloud: BulkRead, providers: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    classes, traits = cloud.class_names, cloud.trait_names
    shown = []
    for id_, uuid, name, generation, parent, root in providers:
        stocks = cloud.stocks.get(id_, ())
        shown.append(
            {
                "uuid": uuid,
                "name": name,
                "generation": generation,
                "parent_provider_uuid": parent,
                "root_provider_uuid": root,
                "inventories": {classes[row[0]]: dict(zip(AMOUNTS, row[1:7], strict=True)) for row in stocks},
                "usages": {classes[row[0]]: row[7] for row in stocks},
                "traits": sorted([traits[trait] for trait in cloud.traits.get(id_, ())]),
                "aggregates": sorted(cloud.aggregates.get(id_, ())),
            }
        )
    return shown


ROUTES = (planner_route("GET", "/inventory", list_inventory, rule="inventory:list", query=FILTERS),)
