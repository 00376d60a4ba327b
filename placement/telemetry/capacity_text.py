"""The cloud's capacity as metrics, named as by the OpenStack exporter so that its dashboards keep working.

https://github.com/openstack-exporter/openstack-exporter: ``openstack_placement_resource_*{hostname,resourcetype}`` and
``openstack_placement_resource_provider_allocations{hostname,uuid,resourcetype}``, where ``uuid`` is the consumer's.
"""

from collections.abc import Iterator, Sequence

from placement.services.capacity import AllocationRow, CapacityRow

ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

GAUGES = (
    ("openstack_placement_resource_total", "Inventory of a resource class.", 2),
    ("openstack_placement_resource_allocation_ratio", "How often it may be given out.", 3),
    ("openstack_placement_resource_reserved", "How much is reserved.", 4),
    ("openstack_placement_resource_usage", "How much is allocated.", 5),
    ("openstack_placement_resource_generation", "Generation of the provider.", 6),
)
"""Name, help text, and index in a row."""


def capacity_lines(rows: Sequence[CapacityRow] | None) -> Iterator[str]:
    """Yield the lines of the gauges; without rows, only that the database answers."""
    yield "# HELP openstack_placement_up Whether the database answers.\n# TYPE openstack_placement_up gauge\n"
    yield "openstack_placement_up 1\n"
    if rows is None:
        return
    labels = [f'{{hostname="{row[0].translate(ESCAPES)}",resourcetype="{row[1]}"}}' for row in rows]
    for name, help_text, index in GAUGES:
        yield f"# HELP {name} {help_text}\n# TYPE {name} gauge\n"
        for label, row in zip(labels, rows, strict=True):
            yield f"{name}{label} {row[index]}\n"


def allocation_lines(rows: Sequence[AllocationRow]) -> Iterator[str]:
    """Yield the lines of the gauge of allocations."""
    name = "openstack_placement_resource_provider_allocations"
    yield f"# HELP {name} How much a consumer holds.\n# TYPE {name} gauge\n"
    for host, consumer, resource_class, amount in rows:
        yield (
            f'{name}{{hostname="{host.translate(ESCAPES)}",uuid="{consumer.translate(ESCAPES)}",'
            f'resourcetype="{resource_class}"}} {amount}\n'
        )
