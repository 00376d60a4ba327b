"""A cloud like a large one: hosts with domain names, in racks and zones, with NUMA nodes, GPUs and NICs."""

from collections.abc import Mapping

from sqlalchemy import insert

from placement.store.connection.database import Database
from placement.store.tables import traits
from tests.bench.clouds import Node
from tests.bench.rows import CONSUMERS_PER_HOST, insert_rows, make_owners, provider_uuid, rows_for

DOMAIN = ".eu-west-1.cloud.example.net"
DISABLED_EACH = 50
MAX_RACKS = 1000


def host_name(number: int, *, in_rack: int) -> str:
    return f"gpu-b{number // in_rack:02}-{number % in_rack:02}{DOMAIN}"


def kinds(zones: int, racks: int) -> Mapping[str, Mapping[str, str]]:
    """Return the section ``aggregates`` of the planner file for such a cloud."""
    return {
        "zone": {f"eu-west-1{'abcdefghij'[zone]}": provider_uuid(f"zone{zone}") for zone in range(zones)},
        "rack": {f"b{rack:02}": provider_uuid(f"rack{rack}") for rack in range(racks)},
    }


def _host(number: int, *, zones: int, racks: int, in_rack: int, nodes: int) -> Node:
    name, rack = host_name(number, in_rack=in_rack), number // in_rack
    disabled = ("COMPUTE_STATUS_DISABLED",) if number % DISABLED_EACH == DISABLED_EACH - 1 else ()
    host = Node(name, {"DISK_GB": 2000}, disabled, (rack * zones // racks, zones + rack))
    for numa in range(nodes):
        node = Node(f"{name}-numa{numa}", {"VCPU": 48, "MEMORY_MB": 393216}, ("HW_NUMA_ROOT",))
        node.children.append(Node(f"{node.name}-gpu0", {"PGPU": 1}, ("CUSTOM_GPU_A100",)))
        host.children.append(node)
    return host


def fill_racks(
    database: Database, hosts: int, *, zones: int = 5, in_rack: int = 25, after: int = 0, sparse: bool = False
) -> None:
    """Write hosts into a database that has the first ``after`` of them; their usage ranges from nothing to everything.

    Sparse ones take a third of the time: each has two consumers, and those after the first thousand have one NUMA node.
    """
    racks = -(-hosts // in_rack)
    with database.writer.begin() as connection:
        if not after:
            connection.execute(insert(traits), {"name": "CUSTOM_GPU_A100"})
            names = [f"zone{zone}" for zone in range(zones)] + [f"rack{rack}" for rack in range(MAX_RACKS)]
            make_owners(connection, aggregates=names)
        rows = rows_for(connection, consumers=2 if sparse else CONSUMERS_PER_HOST)
        for number in range(hosts):
            if number == after:
                rows.clear()
            rows.fill = number % 11 / 10
            rows.add_tree(
                _host(number, zones=zones, racks=racks, in_rack=in_rack, nodes=1 if sparse and number >= 1000 else 2)
            )
        insert_rows(connection, rows)
