"""Translates nova's flavors into the queries that nova sends, and names the extra specs that Placement never sees.

The rules are those of nova's scheduler, its mandatory request filters included, and of its checks of CPU policies
(https://docs.openstack.org/nova/latest/configuration/extra-specs.html); tests/nova compares with nova itself. What
nova's own filters consider, such as the NUMA topology inside a host, has no meaning here.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import os_resource_classes

MIB_PER_GIB = 1024
ALWAYS_AT_ROOT = "!COMPUTE_STATUS_DISABLED"

_KEY = re.compile("(resources|trait)([a-zA-Z0-9_-]{0,64}):(.+)")
_HYPERTHREADING = re.compile("trait([1-9][0-9]*)?:HW_CPU_HYPERTHREADING")
_TRUE = {"1", "t", "true", "on", "y", "yes"}
_SWITCHES = (
    "hw:mem_encryption",
    "hw:ephemeral_encryption",
    "hw:virtio_packed_ring",
    "hw:cpu_realtime",
    "hw:locked_memory",
)

_DEPENDENT = {
    "hw:tpm_version": {"hw:tpm_model": "tpm-tis", "hw:tpm_secret_security": "user"},
    "hw:mem_encryption": {"hw:mem_encryption_model": "amd-sev"},
    "hw:ephemeral_encryption": {"hw:ephemeral_encryption_format": ""},
}
"""Extra spec -> the ones that have a meaning only with it -> their default."""

_TRAITS = {
    "hw:cpu_policy": {"shared": "", "dedicated": "", "mixed": ""},
    "hw:cpu_thread_policy": {"prefer": "", "isolate": "!HW_CPU_HYPERTHREADING", "require": "HW_CPU_HYPERTHREADING"},
    "hw:emulator_threads_policy": {"share": "", "isolate": ""},
    "hw:pci_numa_affinity_policy": {
        "required": "",
        "legacy": "",
        "preferred": "",
        "socket": "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
    },
    "hw:maxphysaddr_mode": {
        "passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
        "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED",
    },
    "os:secure_boot": {"disabled": "", "optional": "", "required": "COMPUTE_SECURITY_UEFI_SECURE_BOOT"},
    "hw:tpm_version": {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"},
    "hw:tpm_model": {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"},
    # nova refuses the last two without an image that requires stateless firmware.
    "hw:mem_encryption_model": {
        "amd-sev": "HW_CPU_X86_AMD_SEV",
        "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
        "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP COMPUTE_SECURITY_STATELESS_FIRMWARE",
        "intel-tdx": "HW_CPU_X86_INTEL_TDX COMPUTE_SECURITY_STATELESS_FIRMWARE",
    },
}
"""Extra spec -> each value that nova accepts -> the traits that it requires."""

_ROOT_TRAITS = {
    "hw:tpm_secret_security": {
        name: f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{name.upper()}" for name in ("user", "host", "deployment")
    },
    "hw:ephemeral_encryption": {"true": "COMPUTE_EPHEMERAL_ENCRYPTION"},
    "hw:ephemeral_encryption_format": {
        name: f"COMPUTE_EPHEMERAL_ENCRYPTION_{name.upper()}" for name in ("plain", "luks", "luksv2")
    },
    "hw:virtio_packed_ring": {"true": "COMPUTE_NET_VIRTIO_PACKED"},
    "hw:sound_model": {
        **dict.fromkeys(("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb"), ""),
        "virtio": "COMPUTE_SOUND_MODEL_VIRTIO",
    },
}
"""The same for the traits that nova's request filters require of the root provider."""

Specs = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor as nova has it; memory and swap in MiB, disks in GiB."""

    vcpus: int = 0
    ram: int = 0
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Specs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlavorQuery:
    """The query for a flavor. ``without_meaning`` has the extra specs that the query does not express."""

    query: str
    without_meaning: tuple[str, ...] = ()


class _FlavorDemand:
    """What a flavor asks of Placement, by the suffix of its groups."""

    def __init__(self) -> None:
        self.resources: dict[str, dict[str, int]] = defaultdict(dict)
        self.traits: dict[str, set[str]] = defaultdict(set)
        self.specs: set[str] = set()

    def add_explicit(self, key: str, value: str) -> None:
        """Add ``resources`` or ``trait``, unless nova ignores it."""
        match = _KEY.fullmatch(key)
        if match and match[1] == "resources":
            amount, name = _amount(value), match[3]
            is_class = name.startswith("CUSTOM_") or name in os_resource_classes.STANDARDS
            if is_class and amount is not None and amount >= 0:
                self.resources[match[2]][name] = amount
                self.specs.add(key)
        elif match and value in ("required", "forbidden"):
            self.traits[match[2]].add(match[3] if value == "required" else f"!{match[3]}")
            self.specs.add(key)

    def includes(self, *classes: str) -> bool:
        """Tell whether a group asks for one of the classes, be it for nothing of it."""
        return any(not amounts.keys().isdisjoint(classes) for amounts in self.resources.values())


def flavor_query(flavor: Flavor, *, root_required: Iterable[str] = ()) -> FlavorQuery:
    """Return the query that nova sends to Placement for a flavor; ValueError, saying why, if either refuses it.

    ``root_required`` has the traits that request filters of this cloud's nova add for each flavor.

    >>> flavor_query(Flavor(vcpus=2, ram=2048, disk=20, extra_specs={"resources:PCPU": "2", "hw:numa_nodes": "2"}))
    ... # doctest: +NORMALIZE_WHITESPACE
    FlavorQuery(query='resources=DISK_GB:20,MEMORY_MB:2048,PCPU:2&root_required=!COMPUTE_STATUS_DISABLED',
                without_meaning=('hw:numa_nodes',))
    """
    specs = _effective(flavor.extra_specs)
    _check(flavor, specs)
    demand = _FlavorDemand()
    for key, value in specs.items():
        demand.add_explicit(key, value)
    demand.resources[""] |= _processors(flavor, specs)
    _add_implied(flavor, specs, demand)
    demand.traits[""] |= set(_traits(specs, _TRAITS))
    at_root = {ALWAYS_AT_ROOT, *root_required, *_traits(specs, _ROOT_TRAITS)}
    if "accel:device_profile" in specs:
        at_root.add("COMPUTE_ACCELERATORS")
    expressed = demand.specs | (specs.keys() & {*_TRAITS, *_ROOT_TRAITS, "hw:mem_encryption", "hw:pmem"})
    if specs.get("hw:cpu_policy") == "mixed":
        expressed |= {"hw:cpu_dedicated_mask", "hw:cpu_realtime", "hw:cpu_realtime_mask"}
    parameters = dict(_parameters(demand))
    if specs.get("group_policy") in ("none", "isolate"):
        parameters["group_policy"] = specs["group_policy"]
        expressed.add("group_policy")
    elif len([name for name in parameters if re.fullmatch("resources.+", name)]) > 1:
        raise ValueError("Placement refuses more than one numbered group without group_policy.")
    parameters["root_required"] = _joined(at_root)
    query = "&".join([f"{name}={value}" for name, value in parameters.items()])
    return FlavorQuery(query, tuple(sorted(flavor.extra_specs.keys() - expressed)))


def _amount(value: str) -> int | None:
    """Return a whole number, None for what nova ignores."""
    try:
        return int(value)
    except ValueError:
        return None


def _effective(extra_specs: Specs) -> Specs:
    """Return the extra specs that have an effect, with true switches as "true", and with defaults of dependent ones."""
    specs = {key: value for key, value in extra_specs.items() if value}
    for key in _SWITCHES:
        if specs.pop(key, "").strip().lower() in _TRUE:
            specs[key] = "true"
    for key, dependent in _DEPENDENT.items():
        for name, default in dependent.items():
            if key not in specs:
                specs.pop(name, None)
            elif default:
                specs.setdefault(name, default)
    return specs


def _check(flavor: Flavor, specs: Specs) -> None:
    for key, values in {**_TRAITS, **_ROOT_TRAITS}.items():
        if key in specs and specs[key] not in values:
            raise ValueError(f"nova refuses {key}={specs[key]}; it knows {', '.join(values)}.")
    if specs.get("hw:tpm_model") == "tpm-crb" and specs["hw:tpm_version"] != "2.0":
        raise ValueError("nova refuses hw:tpm_model=tpm-crb without hw:tpm_version=2.0.")
    if conflict := _conflict(flavor, specs):
        raise ValueError(f"nova refuses {conflict}.")


def _conflict(flavor: Flavor, specs: Specs) -> str | None:
    """Return the extra specs about processors that nova refuses, None if it accepts them."""
    vcpus, pcpus = _explicit(specs, "VCPU"), _explicit(specs, "PCPU")
    dedicated, realtime = _dedicated_cpus(flavor, specs), _realtime_cpus(flavor, specs)
    threads, isolates = specs.get("hw:cpu_thread_policy"), specs.get("hw:emulator_threads_policy") == "isolate"
    trait = next((value for key, value in specs.items() if _HYPERTHREADING.match(key)), None)
    written = specs.get("hw:cpu_policy", "shared")
    policy = "shared" if vcpus else "dedicated" if pcpus else written
    conflicts = {
        "resources:VCPU or resources:PCPU beside hw:cpu_policy": (vcpus or pcpus) and "hw:cpu_policy" in specs,
        "both resources:VCPU and resources:PCPU": vcpus and pcpus,
        f"resources:PCPU={pcpus} for {flavor.vcpus + isolates} CPUs": pcpus and pcpus != flavor.vcpus + isolates,
        "trait:HW_CPU_HYPERTHREADING beside hw:cpu_thread_policy": trait and threads,
        "policies for threads without dedicated CPUs": policy == "shared"
        and (threads or trait in ("required", "forbidden") or isolates),
        "hw:cpu_realtime without dedicated CPUs": policy == "shared" and realtime,
        "hw:cpu_dedicated_mask without hw:cpu_policy=mixed": policy != "mixed" and dedicated,
        "hw:cpu_policy=mixed without exactly one of hw:cpu_dedicated_mask and hw:cpu_realtime": policy == "mixed"
        and bool(dedicated) == bool(realtime),
        "hw:locked_memory without hw:mem_page_size": "hw:locked_memory" in specs and "hw:mem_page_size" not in specs,
    }
    return next((text for text, holds in conflicts.items() if holds), None)


def _explicit(specs: Specs, resource_class: str) -> int:
    """Return how much of a class unsuffixed and numbered groups ask for."""
    pattern = re.compile(f"resources([1-9][0-9]*)?:{resource_class}")
    return sum([_amount(value) or 0 for key, value in specs.items() if pattern.fullmatch(key)])


def _dedicated_cpus(flavor: Flavor, specs: Specs) -> set[int]:
    if not (mask := specs.get("hw:cpu_dedicated_mask")):
        return set()
    cpus = _cpus("hw:cpu_dedicated_mask", mask, flavor.vcpus)
    if not cpus or not cpus < set(range(flavor.vcpus)):
        raise ValueError(
            f"nova refuses hw:cpu_dedicated_mask={mask}: it must select some of the flavor's CPUs, not all."
        )
    return cpus


def _realtime_cpus(flavor: Flavor, specs: Specs) -> set[int]:
    if "hw:cpu_realtime" not in specs:
        return set()
    cpus = every = set(range(flavor.vcpus))
    if mask := specs.get("hw:cpu_realtime_mask"):
        cpus = _cpus("hw:cpu_realtime_mask", mask, flavor.vcpus)
    if not cpus or not cpus <= every or (cpus == every and "hw:emulator_threads_policy" not in specs):
        raise ValueError("nova refuses hw:cpu_realtime without a mask of some of the CPUs.")
    return cpus


def _cpus(key: str, mask: str, vcpus: int) -> set[int]:
    """Return the CPUs in a mask such as ``0-3,^1``; a mask that begins with an exclusion means all others."""
    sides: dict[str, set[int]] = {"": set(range(vcpus)) if mask.strip().startswith("^") else set(), "^": set()}
    for rule in filter(None, map(str.strip, mask.split(","))):
        match = re.fullmatch(r"(\^?)\s*(\d{1,6})\s*(?:-\s*(\d{1,6}))?", rule)
        if match is None or int(match[2]) > int(match[3] or match[2]):
            raise ValueError(f"nova refuses {key}={mask}: {rule} is no range of CPUs.")
        sides[match[1]] |= set(range(int(match[2]), int(match[3] or match[2]) + 1))
    return sides[""] - sides["^"]


def _processors(flavor: Flavor, specs: Specs) -> dict[str, int]:
    """Return the CPUs that a CPU policy asks for; emulator threads in isolation take one more."""
    policy = specs.get("hw:cpu_policy")
    if policy not in ("dedicated", "mixed"):
        return {}
    isolated = specs.get("hw:emulator_threads_policy") == "isolate"
    if policy == "dedicated":
        return {"PCPU": flavor.vcpus + isolated}
    dedicated = len(_dedicated_cpus(flavor, specs) or _realtime_cpus(flavor, specs))
    return {"VCPU": flavor.vcpus - dedicated, "PCPU": dedicated + isolated}


def _add_implied(flavor: Flavor, specs: Specs, demand: _FlavorDemand) -> None:
    """Add what fields ask for, unless extra specs do, and what memory encryption and persistent memory take."""
    disk = flavor.disk + flavor.ephemeral + math.ceil(flavor.swap / MIB_PER_GIB)  # Swap counts as disk.
    if not demand.includes("VCPU", "PCPU"):
        demand.resources[""]["VCPU"] = flavor.vcpus
    for resource_class, amount in (("MEMORY_MB", flavor.ram), ("DISK_GB", disk)):
        if not demand.includes(resource_class):
            demand.resources[""][resource_class] = amount
    names = ["MEM_ENCRYPTION_CONTEXT"] if "hw:mem_encryption" in specs else []
    for label in filter(None, map(str.strip, specs.get("hw:pmem", "").split(","))):
        names.append(os_resource_classes.normalize_name(f"PMEM_NAMESPACE_{label}"))
    demand.resources[""] |= Counter(names)


def _traits(specs: Specs, table: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for key, values in table.items():
        if key in specs:
            yield from values[specs[key]].split()


def _parameters(demand: _FlavorDemand) -> Iterator[tuple[str, str]]:
    for suffix in sorted({*demand.resources, *demand.traits}):
        if amounts := [f"{name}:{amount}" for name, amount in sorted(demand.resources[suffix].items()) if amount]:
            yield f"resources{suffix}", ",".join(amounts)
        if demand.traits[suffix]:
            if not amounts:
                raise ValueError(f"Placement refuses required{suffix} without resources{suffix}.")
            yield f"required{suffix}", _joined(demand.traits[suffix])


def _joined(traits: Iterable[str]) -> str:
    """Return traits as nova writes them: forbidden ones last."""
    return ",".join(sorted(traits, key=lambda trait: (trait.startswith("!"), trait)))
