"""The query strings of GET /allocation_candidates that are measured."""

SMALL = "VCPU:1,MEMORY_MB:512"

SIMPLE = f"resources={SMALL},DISK_GB:10"
"""Three classes in the unsuffixed group: served by one provider on flat clouds, by any of a tree on others."""

GATE = (
    "resources=DISK_GB:10&required=COMPUTE_VOLUME_MULTI_ATTACH"
    f"&resources_COMPUTE={SMALL}&required_COMPUTE=HW_NUMA_ROOT"
    "&resources_NIC=SRIOV_NET_VF:1&required_NIC=HW_NIC_OFFLOAD_GENEVE"
    "&group_policy=none&same_subtree=_COMPUTE,_NIC"
)
"""The query for nested trees from the reference's own performance job, with NICs in place of its FPGAs."""

GATE_WITHOUT_NICS = GATE.replace("HW_NIC_OFFLOAD_GENEVE", "HW_NIC_OFFLOAD_QINQ")
"""The same with a trait that no NIC has, so that every tree lacks exactly one thing."""

ON_CROWDED_NODES = "&".join(f"resources_N{number}=VCPU:10" for number in range(3)) + "&group_policy=none"
"""More than two NUMA nodes that are 60 % full can serve: every tree is searched without finding a candidate."""

NUMA_AND_GPU = f"resources_NUMA={SMALL}&resources_GPU=PGPU:1&group_policy=none&same_subtree=_NUMA,_GPU"

TWO_GPUS_AND_NIC = (
    "resources=DISK_GB:10&resources_GPU1=PGPU:1&resources_GPU2=PGPU:1&resources_NIC=SRIOV_NET_VF:1&group_policy=isolate"
)

APART = f"resources_COMPUTE={SMALL}&resources_DISK=DISK_GB:10&group_policy=isolate"


def devices(groups: int, policy: str = "isolate") -> str:
    """Return a request for the given number of devices, each in its own group."""
    return "&".join(f"resources_D{number}=PGPU:1" for number in range(groups)) + f"&group_policy={policy}"


def gpu_nic_pairs(pairs: int) -> str:
    """Return a request for the given number of GPU and NIC pairs, each pair below one switch."""
    parts = []
    for number in range(pairs):
        parts += [
            f"required_SWITCH{number}=CUSTOM_HW_PCIE_SWITCH",
            f"resources_GPU{number}=PGPU:1",
            f"resources_NIC{number}=SRIOV_NET_VF:1",
            f"same_subtree=_SWITCH{number},_GPU{number},_NIC{number}",
        ]
    return "&".join([*parts, "group_policy=isolate"])
