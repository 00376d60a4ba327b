"""Flavors, and what nova asks of Placement for them; None where it does not boot them.

tests/nova compares the table with nova itself.
"""

from placement.domain.flavors import Flavor

AT_ROOT = "&root_required=!COMPUTE_STATUS_DISABLED"
REQUIRED_AT_ROOT = "&root_required={},!COMPUTE_STATUS_DISABLED"


def _with(specs: str) -> Flavor:
    return Flavor(4, 8192, 20, extra_specs=dict(spec.split("=") for spec in specs.split()))


PLAIN = "resources=DISK_GB:20,MEMORY_MB:8192,VCPU:4"
PINNED = "resources=DISK_GB:20,MEMORY_MB:8192,PCPU:4"

_WITH_SPECS: list[tuple[str, str, str | None]] = [
    ("shared CPUs", "hw:cpu_policy=shared", PLAIN + AT_ROOT),
    ("dedicated CPUs", "hw:cpu_policy=dedicated", PINNED + AT_ROOT),
    ("dedicated CPUs by class", "resources:PCPU=4", PINNED + AT_ROOT),
    ("dedicated CPUs by class and by policy", "resources:PCPU=4 hw:cpu_policy=dedicated", None),
    ("not as many dedicated CPUs as CPUs", "resources:PCPU=2", None),
    (
        "a CPU for emulator threads",
        "hw:cpu_policy=dedicated hw:emulator_threads_policy=isolate",
        "resources=DISK_GB:20,MEMORY_MB:8192,PCPU:5" + AT_ROOT,
    ),
    ("a CPU for emulator threads beside shared CPUs", "hw:emulator_threads_policy=isolate", None),
    (
        "mixed CPUs",
        "hw:cpu_policy=mixed hw:cpu_dedicated_mask=^0",
        "resources=DISK_GB:20,MEMORY_MB:8192,PCPU:3,VCPU:1" + AT_ROOT,
    ),
    (
        "mixed CPUs, dedicated ones for real time",
        "hw:cpu_policy=mixed hw:cpu_realtime=yes hw:cpu_realtime_mask=2-3",
        "resources=DISK_GB:20,MEMORY_MB:8192,PCPU:2,VCPU:2" + AT_ROOT,
    ),
    ("mixed CPUs without a mask", "hw:cpu_policy=mixed", None),
    ("an unknown policy", "hw:cpu_policy=pinned", None),
    (
        "no hyperthreads",
        "hw:cpu_policy=dedicated hw:cpu_thread_policy=isolate",
        f"{PINNED}&required=!HW_CPU_HYPERTHREADING{AT_ROOT}",
    ),
    (
        "CPUs in a numbered group",
        "resources1:VCPU=4",
        "resources=DISK_GB:20,MEMORY_MB:8192&resources1=VCPU:4" + AT_ROOT,
    ),
    (
        "bare metal",
        "resources:VCPU=0 resources:MEMORY_MB=0 resources:DISK_GB=0 resources:CUSTOM_METAL=1",
        "resources=CUSTOM_METAL:1" + AT_ROOT,
    ),
    (
        "traits",
        "trait:HW_CPU_X86_AVX=required trait:CUSTOM_OLD=forbidden",
        f"{PLAIN}&required=HW_CPU_X86_AVX,!CUSTOM_OLD{AT_ROOT}",
    ),
    (
        "groups",
        "resources1:VGPU=1 trait1:CUSTOM_A=required resources_N:PGPU=1 group_policy=isolate",
        f"{PLAIN}&resources1=VGPU:1&required1=CUSTOM_A&resources_N=PGPU:1&group_policy=isolate{AT_ROOT}",
    ),
    ("groups without a policy", "resources1:VGPU=1 resources2:VGPU=1", None),
    ("a group without resources", "trait1:CUSTOM_A=required", None),
    ("what nova ignores", "resources:PGPU=many resources:NO_CLASS=1 trait:CUSTOM_A=wanted", PLAIN + AT_ROOT),
    (
        "encrypted memory",
        "hw:mem_encryption=true",
        "resources=DISK_GB:20,MEMORY_MB:8192,MEM_ENCRYPTION_CONTEXT:1,VCPU:4&required=HW_CPU_X86_AMD_SEV" + AT_ROOT,
    ),
    (
        "encrypted memory of a kind that needs stateless firmware",
        "hw:mem_encryption=true hw:mem_encryption_model=amd-sev-snp",
        PLAIN.replace("VCPU", "MEM_ENCRYPTION_CONTEXT:1,VCPU")
        + f"&required=COMPUTE_SECURITY_STATELESS_FIRMWARE,HW_CPU_X86_AMD_SEV_SNP{AT_ROOT}",
    ),
    (
        "persistent memory",
        "hw:pmem=4GB,4GB,SMALL",
        "resources=CUSTOM_PMEM_NAMESPACE_4GB:2,CUSTOM_PMEM_NAMESPACE_SMALL:1,DISK_GB:20,MEMORY_MB:8192,VCPU:4"
        + AT_ROOT,
    ),
    (
        "a virtual TPM",
        "hw:tpm_version=2.0 hw:tpm_model=tpm-crb hw:tpm_secret_security=host",
        f"{PLAIN}&required=COMPUTE_SECURITY_TPM_2_0,COMPUTE_SECURITY_TPM_CRB"
        + REQUIRED_AT_ROOT.format("COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST"),
    ),
    ("a TPM model without its version", "hw:tpm_version=1.2 hw:tpm_model=tpm-crb", None),
    ("secure boot", "os:secure_boot=required", f"{PLAIN}&required=COMPUTE_SECURITY_UEFI_SECURE_BOOT{AT_ROOT}"),
    ("secure boot if possible", "os:secure_boot=optional", PLAIN + AT_ROOT),
    (
        "devices of the same socket",
        "hw:pci_numa_affinity_policy=socket",
        f"{PLAIN}&required=COMPUTE_SOCKET_PCI_NUMA_AFFINITY{AT_ROOT}",
    ),
    (
        "physical addresses",
        "hw:maxphysaddr_mode=emulate",
        f"{PLAIN}&required=COMPUTE_ADDRESS_SPACE_EMULATED{AT_ROOT}",
    ),
    ("a device profile", "accel:device_profile=a", PLAIN + REQUIRED_AT_ROOT.format("COMPUTE_ACCELERATORS")),
    ("packed rings", "hw:virtio_packed_ring=on", PLAIN + REQUIRED_AT_ROOT.format("COMPUTE_NET_VIRTIO_PACKED")),
    ("sound", "hw:sound_model=virtio", PLAIN + REQUIRED_AT_ROOT.format("COMPUTE_SOUND_MODEL_VIRTIO")),
    (
        "encrypted disks",
        "hw:ephemeral_encryption=1 hw:ephemeral_encryption_format=luks",
        PLAIN + REQUIRED_AT_ROOT.format("COMPUTE_EPHEMERAL_ENCRYPTION,COMPUTE_EPHEMERAL_ENCRYPTION_LUKS"),
    ),
    ("what only nova looks at", "hw:numa_nodes=2 quota:disk_read_iops_sec=9", PLAIN + AT_ROOT),
]

WORKED: list[tuple[str, Flavor, str | None]] = [
    ("plain", Flavor(4, 8192, 20), PLAIN + AT_ROOT),
    ("no disk", Flavor(1, 512), "resources=MEMORY_MB:512,VCPU:1" + AT_ROOT),
    (
        "ephemeral and swap are disk",
        Flavor(1, 512, 10, ephemeral=5, swap=1025),
        "resources=DISK_GB:17,MEMORY_MB:512,VCPU:1" + AT_ROOT,
    ),
    *[(name, _with(specs), query) for name, specs, query in _WITH_SPECS],
]
