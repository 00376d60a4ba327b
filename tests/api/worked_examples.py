"""The worked examples of Placement's guide "Modeling with Provider Trees": clouds, queries and their candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.clouds import SHARES, Provider, provider

CPU, MEMORY, DISK = "VCPU:1", "MEMORY_MB:512", "DISK_GB:500"
INSTANCE = f"resources={CPU},{MEMORY},{DISK}"

Candidate = Mapping[str, str]
"""{provider: "CLASS:amount,CLASS:amount"}"""


@dataclass(frozen=True, slots=True)
class Example:
    """A query, in which <NAME> stands for a uuid, and exactly the candidates it has."""

    id: str
    cloud: Sequence[Provider]
    query: str
    candidates: Sequence[Candidate]


def _each(nodes: str, own: str, others: Candidate) -> list[Candidate]:
    """Return a candidate for each of some providers, combined with the same others."""
    return [{node: own, **others} for node in nodes.split()]


SHARING = (
    provider("SS1", aggregates="A", traits=[SHARES], DISK_GB=1000),
    provider("SS2", traits=[SHARES], DISK_GB=1000),
    provider("CN1", aggregates="A", VCPU=8, MEMORY_MB=1024, DISK_GB=1000),
    provider("CN2", VCPU=8, MEMORY_MB=1024, DISK_GB=1000),
)

NUMA = (
    provider("SS1", aggregates="A", traits=[SHARES], DISK_GB=1000),
    provider(
        "CN1",
        provider("NUMA1_1", VCPU=8),
        provider("NUMA1_2", VCPU=8),
        aggregates="AB",
        MEMORY_MB=1024,
        DISK_GB=1000,
    ),
    provider(
        "CN2",
        provider("NUMA2_1", aggregates="B", VCPU=8),
        provider("NUMA2_2", VCPU=8),
        aggregates="A",
        MEMORY_MB=1024,
        DISK_GB=1000,
    ),
)
LOCAL_DISK_1 = _each("NUMA1_1 NUMA1_2", CPU, {"CN1": f"{MEMORY},{DISK}"})
LOCAL_DISK_2 = _each("NUMA2_1 NUMA2_2", CPU, {"CN2": f"{MEMORY},{DISK}"})
SHARED_DISK = _each("NUMA1_1 NUMA1_2", CPU, {"CN1": MEMORY, "SS1": DISK})
SHARED_DISK += _each("NUMA2_1 NUMA2_2", CPU, {"CN2": MEMORY, "SS1": DISK})

NICS = (
    provider(
        "CN1",
        provider("NIC1_1", traits=["HW_NIC_ACCEL_SSL"], SRIOV_NET_VF=8),
        provider("NIC1_2", SRIOV_NET_VF=8),
        VCPU=8,
        MEMORY_MB=1024,
        DISK_GB=1000,
    ),
)
HOST = {"CN1": f"{CPU},{MEMORY},{DISK}"}
TWO_FUNCTIONS = f"{INSTANCE},SRIOV_NET_VF:2"
GRANULAR = f"{INSTANCE}&resources1=SRIOV_NET_VF:1&required1=HW_NIC_ACCEL_SSL&resources2=SRIOV_NET_VF:1"

TREES = (
    provider("SS1", aggregates="A", traits=[SHARES], DISK_GB=1000),
    provider("SS2", aggregates="A", traits=[SHARES], DISK_GB=1000),
    provider("CN1", provider("NUMA1_1", VCPU=4), provider("NUMA1_2", VCPU=4), aggregates="A", DISK_GB=1000),
    provider("CN2", provider("NUMA2_1", VCPU=4), provider("NUMA2_2", VCPU=4), aggregates="A", DISK_GB=1000),
)
ALL_NODES, NODES_OF_1 = "NUMA1_1 NUMA1_2 NUMA2_1 NUMA2_2", "NUMA1_1 NUMA1_2"

ROOTS = (
    provider(
        "NON_NUMA_CN",
        traits=["HW_CPU_X86_AVX2", "STORAGE_DISK_SSD", "COMPUTE_VOLUME_MULTI_ATTACH", "CUSTOM_WINDOWS_LICENSE_POOL"],
        VCPU=8,
        MEMORY_MB=1024,
        DISK_GB=1000,
    ),
    provider(
        "NUMA_CN",
        provider("NUMA1", VCPU=4, MEMORY_MB=1024),
        provider("NUMA2", traits=["HW_CPU_X86_AVX2"], VCPU=4, MEMORY_MB=1024),
        traits=["STORAGE_DISK_SSD", "COMPUTE_VOLUME_MULTI_ATTACH"],
        DISK_GB=1000,
    ),
)
TWO_GROUPS = f"resources1={CPU},{MEMORY}&resources2=DISK_GB:100&group_policy=none"

FPGAS = (
    provider(
        "CN",
        provider(
            "NUMA0",
            provider("FPGA0_0", traits=["CUSTOM_TYPE1"], FPGA=1),
            traits=["HW_NUMA_ROOT"],
            VCPU=4,
            MEMORY_MB=2048,
        ),
        provider(
            "NUMA1",
            provider("FPGA1_0", traits=["CUSTOM_TYPE1"], FPGA=1),
            provider("FPGA1_1", traits=["CUSTOM_TYPE2"], FPGA=1),
            traits=["HW_NUMA_ROOT"],
            VCPU=4,
            MEMORY_MB=2048,
        ),
    ),
)
ACCELERATED = f"resources_COMPUTE={CPU},MEMORY_MB:256&resources_ACCEL=FPGA:1&group_policy=none"
NODE = f"{CPU},MEMORY_MB:256"
TOGETHER = [
    {"NUMA0": NODE, "FPGA0_0": "FPGA:1"},
    {"NUMA1": NODE, "FPGA1_0": "FPGA:1"},
    {"NUMA1": NODE, "FPGA1_1": "FPGA:1"},
]
APART = [
    {"NUMA0": NODE, "FPGA1_0": "FPGA:1"},
    {"NUMA0": NODE, "FPGA1_1": "FPGA:1"},
    {"NUMA1": NODE, "FPGA0_0": "FPGA:1"},
]
TYPED = (
    "required_NUMA=HW_NUMA_ROOT&resources_ACCEL1=FPGA:1&required_ACCEL1=CUSTOM_TYPE1"
    "&resources_ACCEL2=FPGA:1&required_ACCEL2=CUSTOM_TYPE2&group_policy=none&same_subtree=_NUMA,_ACCEL1,_ACCEL2"
)

EXAMPLES = (
    Example(
        "E-01 a sharing provider serves the hosts of its aggregate",
        SHARING,
        INSTANCE,
        [
            {"CN1": f"{CPU},{MEMORY},{DISK}"},
            {"CN2": f"{CPU},{MEMORY},{DISK}"},
            {"CN1": f"{CPU},{MEMORY}", "SS1": DISK},
        ],
    ),
    Example(
        "E-02 and whole trees of which one provider is in it",
        NUMA,
        INSTANCE,
        [*LOCAL_DISK_1, *LOCAL_DISK_2, *SHARED_DISK],
    ),
    Example(
        "E-03 a root's aggregate spans its tree",
        NUMA,
        f"{INSTANCE}&member_of=<A>",
        [*LOCAL_DISK_1, *LOCAL_DISK_2, *SHARED_DISK],
    ),
    Example("E-04 a child's aggregate does not", NUMA, f"{INSTANCE}&member_of=<B>", LOCAL_DISK_1),
    Example(
        "E-04b a suffixed group asks for direct membership",
        NUMA,
        "resources1=VCPU:1&member_of1=<B>",
        [{"NUMA2_1": CPU}],
    ),
    Example(
        "E-05 a required trait",
        NICS,
        f"{TWO_FUNCTIONS}&required=HW_NIC_ACCEL_SSL",
        [HOST | {"NIC1_1": "SRIOV_NET_VF:2"}],
    ),
    Example(
        "E-06 a forbidden trait",
        NICS,
        f"{TWO_FUNCTIONS}&required=!HW_NIC_ACCEL_SSL",
        [HOST | {"NIC1_2": "SRIOV_NET_VF:2"}],
    ),
    Example("E-07 no trait asked for", NICS, TWO_FUNCTIONS, _each("NIC1_1 NIC1_2", "SRIOV_NET_VF:2", HOST)),
    Example(
        "E-08 isolated groups",
        NICS,
        f"{GRANULAR}&group_policy=isolate",
        [HOST | {"NIC1_1": "SRIOV_NET_VF:1", "NIC1_2": "SRIOV_NET_VF:1"}],
    ),
    Example(
        "E-09 groups that may share a provider",
        NICS,
        f"{GRANULAR}&group_policy=none",
        [HOST | {"NIC1_1": "SRIOV_NET_VF:1", "NIC1_2": "SRIOV_NET_VF:1"}, HOST | {"NIC1_1": "SRIOV_NET_VF:2"}],
    ),
    Example(
        "E-10 one tree, named by its root",
        TREES,
        "resources=VCPU:1,DISK_GB:50&in_tree=<CN1>",
        _each(NODES_OF_1, CPU, {"CN1": "DISK_GB:50"}),
    ),
    Example(
        "E-11 or by any other node",
        TREES,
        "resources=VCPU:1,DISK_GB:50&in_tree=<NUMA1_1>",
        _each(NODES_OF_1, CPU, {"CN1": "DISK_GB:50"}),
    ),
    Example(
        "E-12 in_tree binds its own group only",
        TREES,
        "resources=VCPU:1&in_tree=<CN1>&resources1=DISK_GB:10",
        [*(found for disk in ("CN1", "SS1", "SS2") for found in _each(NODES_OF_1, CPU, {disk: "DISK_GB:10"}))],
    ),
    Example(
        "E-13 a sharing provider chosen",
        TREES,
        "resources=VCPU:1&resources1=DISK_GB:10&in_tree1=<SS1>",
        _each(ALL_NODES, CPU, {"SS1": "DISK_GB:10"}),
    ),
    Example(
        "E-14 both chosen",
        TREES,
        "resources1=VCPU:1&in_tree1=<CN1>&resources2=DISK_GB:10&in_tree2=<SS1>&group_policy=isolate",
        _each(NODES_OF_1, CPU, {"SS1": "DISK_GB:10"}),
    ),
    Example(
        "E-15 a trait of the root",
        ROOTS,
        f"{TWO_GROUPS}&required1=HW_CPU_X86_AVX2&root_required=COMPUTE_VOLUME_MULTI_ATTACH",
        [
            {"NON_NUMA_CN": f"{CPU},{MEMORY},DISK_GB:100"},
            {"NUMA_CN": "DISK_GB:100", "NUMA2": f"{CPU},{MEMORY}"},
        ],
    ),
    Example(
        "E-16 a trait the root must not have",
        ROOTS,
        f"{TWO_GROUPS}&root_required=!CUSTOM_WINDOWS_LICENSE_POOL",
        _each("NUMA1 NUMA2", f"{CPU},{MEMORY}", {"NUMA_CN": "DISK_GB:100"}),
    ),
    Example("E-17 groups in one subtree", FPGAS, f"{ACCELERATED}&same_subtree=_COMPUTE,_ACCEL", TOGETHER),
    Example("E-17b groups anywhere in the tree", FPGAS, ACCELERATED, [*TOGETHER, *APART]),
    Example(
        "E-18 a group without resources ties two others together",
        FPGAS,
        TYPED,
        [{"FPGA1_0": "FPGA:1", "FPGA1_1": "FPGA:1"}],
    ),
)

REFUSED = (
    ("E-09b several groups without group_policy", NICS, GRANULAR),
    ("E-16b any-traits of the root", ROOTS, f"{TWO_GROUPS}&root_required=in:HW_CPU_X86_AVX2,STORAGE_DISK_SSD"),
    (
        "E-16b root_required twice",
        ROOTS,
        f"{TWO_GROUPS}&root_required=STORAGE_DISK_SSD&root_required=HW_CPU_X86_AVX2",
    ),
    ("E-16b root_required with a suffix", ROOTS, f"{TWO_GROUPS}&root_required1=STORAGE_DISK_SSD"),
)
