"""The clouds of the fixtures: those of fixture_clouds.yaml, and one that is generated."""

from pathlib import Path

import yaml

from tests.clouds import Provider, provider, trees

_TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
CLOUDS = {name: trees(written) for name, written in _TABLE.items()}

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
