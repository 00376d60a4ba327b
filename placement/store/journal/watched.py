"""What the journal watches: eight tables of the reference, and how their columns map to its own."""

from dataclasses import dataclass
from typing import NamedTuple

ALLOCATION, INVENTORY, TRAIT, AGGREGATE = "allocation", "inventory", "trait", "aggregate"
PROVIDER, GENERATION, CONSUMER, JOURNAL = "provider", "generation", "consumer", "journal"
CLASS_NAME, TRAIT_NAME = "class_name", "trait_name"
"""Kinds of rows. ``generation`` is a provider where nothing else changed; ``journal`` is about the journal itself.
``class_name`` and ``trait_name`` are about resource classes and traits themselves, not about providers that have them.
"""

NAME_KINDS = (CLASS_NAME, TRAIT_NAME)

MARK_KINDS = (TRAIT, AGGREGATE)
"""Kinds of rows about what a provider has been given or lost that is no amount."""

CREATED, CHANGED, DELETED, BEGAN = "created", "changed", "deleted", "began"
"""Actions. ``began`` is for the journal only: changes before that row may be missing."""

REQUEST_SETTING = "placement.request"
"""The transaction-local setting on PostgreSQL with the origin: ``REQUEST_COLUMNS`` joined by ``SEPARATOR``."""

REQUEST_VARIABLE = "@placement_request"
"""The same on MariaDB, as a session variable."""

REQUEST_COLUMNS = ("request_id", "by_user", "by_project", "route")
SEPARATOR = "\x1f"


class Lookup(NamedTuple):
    """What is recorded of a row in another table, whose ``key`` has the value of a ``column`` of the watched table."""

    table: str
    key: str
    column: str
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class Watched:
    """A table that the journal watches.

    Args:
        table: its name.
        kind: the kind of its rows in the journal.
        identity: the columns that identify a row; changing one counts as deleting the row and creating another.
        values: the columns whose changes are recorded.
        copies: journal column -> the table column that it is copied from.
        amount: the column behind ``old_amount`` and ``new_amount``.
        shown: the columns that ``old_row`` and ``new_row`` show as JSON if any of them changes.
        lookups: what else is recorded of the provider and consumer.
        named: the column with what rows of the journal are to call an object once it has lost that.
    """

    table: str
    kind: str
    identity: tuple[str, ...]
    copies: dict[str, str]
    values: tuple[str, ...] = ()
    amount: str | None = None
    shown: tuple[str, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    named: str | None = None

    def ends_name(self, action: str) -> bool:
        """Tell whether an action ends a name that older rows of the journal need."""
        return self.named is not None and (action == DELETED or (action == CHANGED and self.named in self.values))


_STOCK = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
_SPOT = {"resource_provider_id": "resource_provider_id", "resource_class_id": "resource_class_id"}
_OWNER = ("project_id", "user_id", "consumer_type_id")
_PROVIDER = Lookup(
    "resource_providers",
    "id",
    "resource_provider_id",
    {"provider_uuid": "uuid", "root_provider_id": "root_provider_id"},
)
_CONSUMER = Lookup("consumers", "uuid", "consumer_id", {name: name for name in _OWNER})
_PLACE = ("name", "parent_provider_id", "root_provider_id")

WATCHED = (
    Watched(
        "allocations",
        ALLOCATION,
        identity=("id", "resource_provider_id", "resource_class_id", "consumer_id"),
        copies={"object_id": "id", "consumer_uuid": "consumer_id"} | _SPOT,
        values=("used",),
        amount="used",
        lookups=(_PROVIDER, _CONSUMER),
    ),
    Watched(
        "inventories",
        INVENTORY,
        identity=("id", "resource_provider_id", "resource_class_id"),
        copies={"object_id": "id"} | _SPOT,
        values=_STOCK,
        amount="total",
        shown=_STOCK,
        lookups=(_PROVIDER,),
    ),
    Watched(
        "resource_provider_traits",
        TRAIT,
        identity=("trait_id", "resource_provider_id"),
        copies={"object_id": "trait_id", "resource_provider_id": "resource_provider_id"},
        lookups=(_PROVIDER,),
    ),
    Watched(
        "resource_provider_aggregates",
        AGGREGATE,
        identity=("aggregate_id", "resource_provider_id"),
        copies={"object_id": "aggregate_id", "resource_provider_id": "resource_provider_id"},
        lookups=(_PROVIDER,),
    ),
    Watched(
        "resource_providers",
        PROVIDER,
        identity=("id", "uuid"),
        copies={
            "object_id": "id",
            "resource_provider_id": "id",
            "provider_uuid": "uuid",
            "root_provider_id": "root_provider_id",
            "generation": "generation",
        },
        values=(*_PLACE, "generation"),
        shown=_PLACE,
        named="uuid",
    ),
    Watched(
        "consumers",
        CONSUMER,
        identity=("id", "uuid"),
        copies={"object_id": "id", "consumer_uuid": "uuid", "generation": "generation"}
        | {name: name for name in _OWNER},
        values=("generation", *_OWNER),
    ),
    Watched(
        "resource_classes",
        CLASS_NAME,
        identity=("id",),
        copies={"object_id": "id", "resource_class_id": "id"},
        values=("name",),
        shown=("name",),
        named="name",
    ),
    Watched(
        "traits",
        TRAIT_NAME,
        identity=("id",),
        copies={"object_id": "id"},
        values=("name",),
        shown=("name",),
        named="name",
    ),
)
