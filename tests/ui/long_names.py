"""A cloud as operators name it: hosts of several kinds with whole domain names, some of them hostile."""

from collections.abc import Iterator

from placement.store.connection.database import Database
from tests.bench.clouds import AGGREGATES, Node
from tests.bench.rows import insert_rows, make_owners, rows_for

DOMAIN = "eu-west-1.cloud.example.net"
DISABLED = "COMPUTE_STATUS_DISABLED"
HOSTILE = ("<b onclick=alert(1)>\"'&amp;", "\u202egpj.exe", "\u200b\u200b", "a\x07b", "x" * 190)
PROJECTS = ("blue", "red", "0f3c9a7d52b84e6fb1d2c3a4b5968778", "research/vision")


def gpu_host(index: int) -> Node:
    """Return a host with two NUMA nodes of two switches, each with two GPUs and a NIC: 19 providers."""
    name = f"gpu-b{index // 10:02}-{index % 10:02}.{DOMAIN}"
    host = Node(name, {"DISK_GB": 7000}, (DISABLED,) if index % 25 == 7 else (), (index % AGGREGATES,))
    for numa in range(2):
        node = Node(f"{name}_numa{numa}", {"VCPU": 96, "MEMORY_MB": 1031072}, ("HW_NUMA_ROOT",))
        for number in range(2):
            switch = Node(f"{node.name}_pcie{number}")
            gpus = [Node(f"{switch.name}_gpu{gpu}", {"PGPU": 1}) for gpu in range(2)]
            switch.children = [*gpus, Node(f"{switch.name}_nic", {"SRIOV_NET_VF": 8})]
            node.children.append(switch)
        host.children.append(node)
    return host


def compute_host(index: int) -> Node:
    """Return a host with two NUMA nodes: three providers."""
    name = f"cmp-r{index // 40:02}-{index % 40:02}.{DOMAIN}"
    host = Node(name, {"DISK_GB": 2000}, (DISABLED,) if index % 50 == 3 else (), (index % AGGREGATES,))
    host.children = [
        Node(f"{name}_numa{numa}", {"VCPU": 48, "MEMORY_MB": 262144}, ("HW_NUMA_ROOT",)) for numa in range(2)
    ]
    return host


def flat_host(index: int) -> Node:
    return Node(f"std-{index:04}.{DOMAIN}", {"VCPU": 64, "MEMORY_MB": 262144, "DISK_GB": 2000}, (), (index % 8,))


def wide_host() -> Node:
    """Return a host with 150 children, next to which long names are nested deeply."""
    host = Node(f"smartnic-000.{DOMAIN}", {"VCPU": 64, "MEMORY_MB": 262144})
    host.children = [Node(f"{host.name}_vf{number:03}", {"SRIOV_NET_VF": 1}) for number in range(150)]
    return host


def deep_host() -> Node:
    """Return a host whose providers are nested nine levels deep."""
    host = last = Node(f"deep-000.{DOMAIN}", {"VCPU": 64, "MEMORY_MB": 262144})
    for level in range(1, 9):
        below = Node(f"{last.name}_level{level}", {"SRIOV_NET_VF": level})
        last.children = [below]
        last = below
    return host


def long_named(hosts: int) -> Iterator[Node]:
    """Yield the trees of such a cloud; of a thousand, a hundred have GPUs and a hundred are unused disks."""
    yield wide_host()
    yield deep_host()
    for number, name in enumerate(HOSTILE):
        yield Node(name, {"VCPU": 8, "MEMORY_MB": 4096}, children=[Node(f"{name}_numa{number}", {"PGPU": 1})])
    for index in range(hosts // 10):
        yield gpu_host(index)
        yield Node(f"ceph-osd-{index:04}.{DOMAIN}", {"DISK_GB": 370_000})
    for index in range(hosts * 6 // 10):
        yield compute_host(index)
    for index in range(hosts * 2 // 10):
        yield flat_host(index)


def load_long_named(database: Database, hosts: int, *, fill: float = 0.7) -> None:
    """Put such a cloud into an empty database; three hosts in four have some usage, Ceph's disks have none."""
    with database.writer.begin() as connection:
        aggregates = [f"aggregate{number}" for number in range(AGGREGATES)]
        make_owners(connection, aggregates=aggregates, names=PROJECTS)
        rows = rows_for(connection)
        rows.projects = len(PROJECTS)
        for index, root in enumerate(long_named(hosts)):
            rows.fill = 0.0 if index % 4 == 0 or root.name.startswith("ceph") else fill
            rows.add_tree(root)
        insert_rows(connection, rows)
