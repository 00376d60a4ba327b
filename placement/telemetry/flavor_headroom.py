"""The capacity of the cloud and the headroom of flavors as metrics, with the names that existing dashboards know.

https://github.com/stackhpc/os-capacity: ``openstack_free_capacity_by_flavor_total{flavor_name, public}`` and
``openstack_free_capacity_hypervisor_by_flavor{hypervisor, flavor_name, az_aggregate, project_aggregate}``.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence

from placement.candidates.headroom.totals import CountedRequest
from placement.domain.tree import PlaceLock
from placement.errors import Invalid, PlacementError
from placement.services.bulk_read import trees_in
from placement.services.planner.request_rooms import Headrooms, Listing, headrooms
from placement.settings import HeadroomSettings, PlannerSettings
from placement.store.bulk_read import AllocationRow, CapacityRow
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database
from placement.telemetry.record import MEANINGS

LOG = logging.getLogger(__name__)

TOTAL = "openstack_free_capacity_by_flavor_total"
BY_HOST = "openstack_free_capacity_hypervisor_by_flavor"
MAX_HOSTS = 100_000
KINDS = {"az_aggregate": "zone", "project_aggregate": "project"}
"""Which kind of the planner file's aggregates a label shows the name of."""

ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

GAUGES = (
    ("openstack_placement_resource_total", 2),
    ("openstack_placement_resource_allocation_ratio", 3),
    ("openstack_placement_resource_reserved", 4),
    ("openstack_placement_resource_usage", 5),
    ("openstack_placement_resource_generation", 6),
)
"""Name, and index in a row."""


class FlavorHeadroom:
    """The headroom of flavors, recounted in the background when it is requested and outdated.

    Nothing fits into a place whose lock is held.
    """

    def __init__(
        self,
        database: Database,
        requests: Mapping[str, CountedRequest],
        settings: HeadroomSettings,
        *,
        planner: PlannerSettings,
        locks: Sequence[PlaceLock] = (),
    ) -> None:
        self._database = database
        self._requests = requests
        self._settings = settings
        self._planner = planner
        self._locks = locks
        self._lines: list[str] = []
        self.counting = BackgroundWork(self._count, name="headroom", first_s=0, every_s=settings.seconds)

    def lines(self) -> list[str]:
        """Return the lines of the last count; none before the first is done."""
        if self._requests and time.monotonic() >= self.counting.due:
            self.counting.begin()
        return self._lines

    def _count(self) -> None:
        try:
            self._lines = [line for counts in self._counts() for line in self._shown(counts)]
        except PlacementError as error:
            LOG.warning("The headroom of flavors is not up to date: %s", error.message)
        finally:
            self.counting.due = time.monotonic() + self._settings.seconds

    def _counts(self) -> Iterator[Headrooms]:
        listing = Listing(trees=self._settings.by_hypervisor, models=False, limit=MAX_HOSTS)
        try:
            yield headrooms(self._database, self._requests, listing, locks=self._locks)
        except Invalid:
            # A flavor names something that does not exist yet, so count the others one by one.
            for name, request in self._requests.items():
                try:
                    yield headrooms(self._database, {name: request}, listing, locks=self._locks)
                except Invalid as error:
                    LOG.warning("The headroom of the flavor %s is not counted: %s", name, error.message)

    def _shown(self, counts: Headrooms) -> Iterator[str]:
        names = {label: self._names_of(kind) for label, kind in KINDS.items()} if self._settings.by_hypervisor else {}
        for name, counted in counts.rooms.items():
            flavor, public = name.translate(ESCAPES), name not in self._planner.private_flavors
            yield f'{TOTAL}{{flavor_name="{flavor}",public="{public}"}} {counted.headroom.copies.least}\n'
            for root, copies in counted.trees:
                host = counts.providers[root].name.translate(ESCAPES)
                labels = "".join([f',{label}="{of_hosts.get(root, "")}"' for label, of_hosts in names.items()])
                yield f'{BY_HOST}{{hypervisor="{host}",flavor_name="{flavor}"{labels}}} {copies.least}\n'

    def _names_of(self, kind: str) -> dict[int, str]:
        """Map the root of each tree in an aggregate of a kind to its name; of several, to the first one listed."""
        aggregates = {uuid: name for name, uuids in self._planner.aggregates.get(kind, {}).items() for uuid in uuids}
        trees = trees_in(self._database, [*aggregates])
        names: dict[int, str] = {}
        for uuid, name in aggregates.items():
            for root in trees.get(uuid, ()):
                names.setdefault(root, name.translate(ESCAPES))
        return names


def with_help(lines: list[str]) -> Iterator[str]:
    """Yield lines grouped by metric, each group preceded by its help text."""
    for name in (TOTAL, BY_HOST):
        own = [line for line in lines if line.startswith(name + "{")]
        if own:
            yield heading(name)
            yield from own


def heading(name: str) -> str:
    """Return the lines that introduce a gauge."""
    return f"# HELP {name} {MEANINGS[name]}\n# TYPE {name} gauge\n"


def capacity_lines(rows: Sequence[CapacityRow] | None) -> Iterator[str]:
    """Yield the lines of the gauges; without rows, only that the database answers."""
    up = "openstack_placement_up"
    yield f"{heading(up)}{up} 1\n"
    if rows is None:
        return
    labels = [f'{{hostname="{row[0].translate(ESCAPES)}",resourcetype="{row[1]}"}}' for row in rows]
    for name, index in GAUGES:
        yield heading(name)
        for label, row in zip(labels, rows, strict=True):
            yield f"{name}{label} {row[index]}\n"


def allocation_lines(rows: Sequence[AllocationRow]) -> Iterator[str]:
    """Yield the lines of the gauge of allocations."""
    name = "openstack_placement_resource_provider_allocations"
    yield heading(name)
    for host, consumer, resource_class, amount in rows:
        yield (
            f'{name}{{hostname="{host.translate(ESCAPES)}",uuid="{consumer.translate(ESCAPES)}",'
            f'resourcetype="{resource_class}"}} {amount}\n'
        )
