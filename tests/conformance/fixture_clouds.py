"""The clouds of the fixtures, as tree literals."""

from tests.clouds import SHARES, Inventory, Provider, provider


def _shared_storage_host(number: int, **more: object) -> Provider:
    nodes = [provider(f"numa{number}_{i}", provider(f"pf{number}_{i}", SRIOV_NET_VF=8)) for i in (1, 2)]
    cpu = {"total": 24, "allocation_ratio": 16.0}
    memory = {"total": 128 * 1024, "allocation_ratio": 1.5}
    return provider(f"cn{number}", *nodes, aggregates="A", VCPU=cpu, MEMORY_MB=memory, **more)


RESERVED_DISK: Inventory = {"total": 2000, "reserved": 100}

SHARED_STORAGE = (
    _shared_storage_host(1, traits=("HW_CPU_X86_SSE", "HW_CPU_X86_SSE2")),
    _shared_storage_host(2, DISK_GB=RESERVED_DISK),
    provider("ss", aggregates="A", traits=[SHARES], DISK_GB=RESERVED_DISK),
    provider("ss2", aggregates="A", traits=[SHARES], DISK_GB=RESERVED_DISK),
)

OVERCOMMITTED_CPU: Inventory = {"total": 24, "allocation_ratio": 16.0}

NUMA_AGGREGATES = (
    provider(
        "cn1",
        provider("numa1_1", aggregates="C", VCPU=OVERCOMMITTED_CPU),
        provider("numa1_2", VCPU=OVERCOMMITTED_CPU),
        aggregates="A",
    ),
    provider(
        "cn2",
        provider("numa2_1", VCPU=OVERCOMMITTED_CPU),
        provider("numa2_2", VCPU=OVERCOMMITTED_CPU),
        aggregates="AB",
    ),
    provider("ss1", aggregates="A", traits=[SHARES], DISK_GB=RESERVED_DISK),
    provider("ss2", aggregates="C", traits=[SHARES], DISK_GB=RESERVED_DISK),
)

NETWORK_STORAGE = provider("ss1", aggregates="A", traits=[SHARES], DISK_GB=2000)

NUMA_HOST = provider(
    "cn1",
    provider(
        "numa0",
        provider("fpga0", FPGA=1),
        provider("pgpu0", VGPU=8),
        traits=["HW_NUMA_ROOT"],
        VCPU=4,
        MEMORY_MB={"total": 2048, "min_unit": 512, "step_size": 256},
    ),
    provider(
        "numa1",
        provider("fpga1_0", FPGA=1),
        provider("fpga1_1", FPGA=1),
        traits=["HW_NUMA_ROOT", "CUSTOM_FOO"],
        VCPU=4,
        MEMORY_MB={"total": 2048, "min_unit": 256, "max_unit": 1024},
    ),
    provider(
        "sriov_agent",
        provider("esn1", traits=["CUSTOM_PHYSNET1"], NET_BW_EGR_KILOBIT_PER_SEC=10000),
        provider("esn2", traits=["CUSTOM_PHYSNET2"], NET_BW_EGR_KILOBIT_PER_SEC=20000),
        traits=["CUSTOM_VNIC_TYPE_DIRECT"],
    ),
    provider(
        "ovs_agent",
        provider("br_int", traits=["CUSTOM_PHYSNET0"], NET_BW_EGR_KILOBIT_PER_SEC=1000),
        traits=["CUSTOM_VNIC_TYPE_NORMAL"],
    ),
    aggregates="A",
    traits=["COMPUTE_VOLUME_MULTI_ATTACH"],
)


def _function(name: str, physnet: int, functions: int) -> Provider:
    return provider(name, traits=[f"CUSTOM_PHYSNET{physnet}"], CUSTOM_VF=functions)


NIC_HOST = provider(
    "cn2",
    provider("nic1", _function("pf1_1", 1, 4), _function("pf1_2", 2, 4), traits=["CUSTOM_HW_NIC_ROOT"]),
    provider(
        "nic2",
        _function("pf2_1", 1, 2),
        _function("pf2_2", 2, 2),
        _function("pf2_3", 1, 2),
        _function("pf2_4", 2, 2),
        traits=["CUSTOM_HW_NIC_ROOT"],
    ),
    provider("nic3", _function("pf3_1", 1, 8), traits=["CUSTOM_HW_NIC_ROOT"]),
    aggregates="A",
    traits=["CUSTOM_FOO"],
    VCPU=8,
    MEMORY_MB={"total": 2048, "min_unit": 1024, "step_size": 128},
    DISK_GB=1000,
)

LOCAL_DISKS = tuple(provider(f"cn{i}", VCPU=24, MEMORY_MB=128 * 1024, DISK_GB=2000) for i in (1, 2, 3))

GRANULAR = (
    provider(
        "cn_left",
        aggregates="A",
        traits=["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_GPU_API_DXVA", "HW_NIC_DCB_PFC", "CUSTOM_FOO"],
        VCPU=8,
        MEMORY_MB=4096,
        DISK_GB=500,
        VGPU=8,
        SRIOV_NET_VF=8,
        CUSTOM_NET_MBPS=4000,
    ),
    provider(
        "cn_middle",
        aggregates="AB",
        traits=["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE", "HW_NIC_ACCEL_TLS"],
        VCPU=8,
        MEMORY_MB=4096,
        SRIOV_NET_VF=8,
        CUSTOM_NET_MBPS=4000,
    ),
    provider(
        "cn_right",
        aggregates="BC",
        traits=["HW_CPU_X86_MMX", "HW_GPU_API_DXVA", "CUSTOM_DISK_SSD"],
        VCPU=8,
        MEMORY_MB=4096,
        DISK_GB=500,
        VGPU={"total": 8, "max_unit": 2},
    ),
    provider("shr_disk_1", aggregates="A", traits=[SHARES, "CUSTOM_DISK_SSD"], DISK_GB=1000),
    provider("shr_disk_2", aggregates="AB", traits=[SHARES], DISK_GB=1000),
    provider("shr_net", aggregates="C", traits=[SHARES], SRIOV_NET_VF=16, CUSTOM_NET_MBPS=40000),
)

DIRECT = ("CUSTOM_VNIC_TYPE_DIRECT", "CUSTOM_VNIC_TYPE_DIRECT_PHYSICAL", "CUSTOM_VNIC_TYPE_MACVTAP")
SEGMENTS = {
    0: ("CUSTOM_PHYSNET_OTHER",),
    1: ("CUSTOM_PHYSNET_MSN_S1",),
    2: ("CUSTOM_PHYSNET_MSN_S2",),
    3: ("CUSTOM_PHYSNET_MSN_S1", "CUSTOM_PHYSNET_MSN_S2"),
}


def _device(name: str, bandwidth: int, *traits: str) -> Provider:
    directions = {"NET_BW_EGR_KILOBIT_PER_SEC": bandwidth, "NET_BW_IGR_KILOBIT_PER_SEC": bandwidth}
    return provider(name, traits=traits, **directions)


def _segment_host(number: int, bridge_bandwidth: int, function_bandwidth: int) -> Provider:
    agent, nic = f"compute{number}:Open vSwitch agent", f"compute{number}:NIC Switch agent"
    bridges = [
        _device(f"{agent}:br-ex{'2' if i else ''}", bridge_bandwidth, "CUSTOM_VNIC_TYPE_NORMAL", physnet)
        for i, physnet in enumerate(SEGMENTS[number])
    ]
    functions = [
        _device(f"{nic}:enp129s0f{i}", function_bandwidth, *DIRECT, physnet)
        for i, physnet in enumerate(SEGMENTS[number])
    ]
    rate = {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 1000}
    return provider(
        f"compute{number}",
        provider(agent, *bridges, traits=["CUSTOM_VNIC_TYPE_NORMAL"], **rate),
        provider(nic, *functions, traits=DIRECT),
        VCPU=8,
        MEMORY_MB=4096,
        DISK_GB=500,
    )


NETWORK_SEGMENTS = (
    _segment_host(0, 5000, 10000),
    _segment_host(1, 5000, 10000),
    _segment_host(2, 5000, 10000),
    _segment_host(3, 1000, 1000),
)


def _segment_variables(number: int) -> dict[str, str]:
    host, agent, nic = f"compute{number}", f"compute{number}:Open vSwitch agent", f"compute{number}:NIC Switch agent"
    return {
        host: host,
        agent: f"{host}:ovs_agent",
        nic: f"{host}:sriov_agent",
        f"{agent}:br-ex": f"{host}:br_ex",
        f"{agent}:br-ex2": f"{host}:br_ex2",
        f"{nic}:enp129s0f0": f"{host}:pf0",
        f"{nic}:enp129s0f1": f"{host}:pf1",
    }


SEGMENT_VARIABLES = {name: variable for i in SEGMENTS for name, variable in _segment_variables(i).items()}
