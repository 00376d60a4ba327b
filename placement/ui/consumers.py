"""Consumers: the list with its search, and the page of one consumer."""

from flask import Response

from placement.api.call import Call
from placement.domain.names import UNTYPED
from placement.errors import NotFound
from placement.services.console.consumers import ConsumerSearch, consumer_with_holdings, found_consumers
from placement.ui.changes import shown_changes
from placement.ui.page import Page, paging_of, show

FIELDS = ("uuid", "project", "type")


def consumers(call: Call) -> Response:
    """Show the newest consumers, or those that match the search."""
    arguments = call.request.args
    sought = {name: arguments.get(name, "").strip() for name in FIELDS}
    sought["uuid"] = sought["uuid"] or arguments.get("q", "").strip()
    paging = paging_of(call.request)
    found = found_consumers(call.database, ConsumerSearch(**sought), first=paging.first, most=paging.size)
    return show("consumers.html", found=found, sought=sought, types=[*found.types, UNTYPED], paging=paging)


def consumer(call: Call, uuid: str) -> Response:
    """Show what one consumer holds, and what it took and gave back; the latter also of one that is gone."""
    paging = paging_of(call.request)
    found = consumer_with_holdings(call.database, uuid, first=paging.first, most=paging.size)
    uuid = found.consumer.uuid if found else uuid.lower()
    changes = shown_changes(call, consumer=uuid)
    if not (found or changes):
        raise NotFound(f"No consumer with uuid {uuid} has allocations.")
    return show("consumer.html", uuid=uuid, found=found, changes=changes, paging=paging)


CONSUMER_RULES = ("placement:allocations:list",)

PAGES = (
    Page(path="/consumers", view=consumers, endpoint="consumers", title="Consumers", rules=CONSUMER_RULES),
    Page(path="/consumers/<uuid>", view=consumer, endpoint="consumer", below="consumers", rules=CONSUMER_RULES),
)
