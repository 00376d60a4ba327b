"""Translates nova's flavors into candidate queries, and reports what of a flavor Placement never sees.

The rules are those of nova's scheduler (https://docs.openstack.org/nova/latest/user/flavors.html and
https://specs.openstack.org/openstack/nova-specs/specs/rocky/implemented/granular-resource-requests.html). What only
nova's own filters consider, such as the NUMA topology inside a host, has no meaning here, and is reported by name.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MIB_PER_GIB = 1024

_KEY = re.compile("(resources|trait)([a-zA-Z0-9_-]{0,64}):(.+)")
_DEDICATED = {"dedicated": "PCPU", "shared": "VCPU"}
_THREADS = {"require": "HW_CPU_HYPERTHREADING", "isolate": "!HW_CPU_HYPERTHREADING"}


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor as nova has it; memory and swap in MiB, disks in GiB."""

    vcpus: int = 0
    ram: int = 0
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlavorQuery:
    """The query for a flavor.

    Args:
        query: the query string of GET /allocation_candidates.
        without_meaning: the extra specs that it does not express.
    """

    query: str
    without_meaning: tuple[str, ...] = ()


def flavor_query(flavor: Flavor) -> FlavorQuery:
    """Return the query that nova sends to Placement for a flavor.

    >>> flavor_query(Flavor(vcpus=2, ram=2048, disk=20, extra_specs={"trait:HW_GPU": "required", "hw:numa_nodes": "2"}))
    FlavorQuery(query='resources=DISK_GB:20,MEMORY_MB:2048,VCPU:2&required=HW_GPU', without_meaning=('hw:numa_nodes',))

    Raises:
        ValueError: an amount is not a whole number.
    """
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    resources[""] = _plain(flavor)
    traits: dict[str, set[str]] = defaultdict(set)
    unsaid = []
    for key, value in flavor.extra_specs.items():
        match = _KEY.fullmatch(key)
        if match and match[1] == "resources":
            resources[match[2]][match[3]] = int(value)
        elif match and value in ("required", "forbidden"):
            traits[match[2]].add(match[3] if value == "required" else f"!{match[3]}")
        elif key == "hw:cpu_thread_policy" and value in _THREADS:
            traits[""].add(_THREADS[value])
        elif not _is_said(key, value):
            unsaid.append(key)
    return FlavorQuery("&".join(_parameters(resources, traits, flavor.extra_specs)), tuple(sorted(unsaid)))


def _plain(flavor: Flavor) -> dict[str, int]:
    """Return what the fields of a flavor ask for; swap counts as disk."""
    processors = _DEDICATED.get(flavor.extra_specs.get("hw:cpu_policy", "shared"), "VCPU")
    disk = flavor.disk + flavor.ephemeral + math.ceil(flavor.swap / MIB_PER_GIB)
    encrypts = flavor.extra_specs.get("hw:mem_encryption", "").lower() in ("true", "1", "yes", "on")
    return {
        processors: flavor.vcpus,
        "MEMORY_MB": flavor.ram,
        "DISK_GB": disk,
        "MEM_ENCRYPTION_CONTEXT": int(encrypts),
    }


def _is_said(key: str, value: str) -> bool:
    """Tell whether an extra spec is expressed elsewhere in the query, or means nothing to Placement."""
    if key == "hw:cpu_policy":
        return value in _DEDICATED
    return key in ("group_policy", "hw:mem_encryption") or (key == "hw:cpu_thread_policy" and value == "prefer")


def _parameters(
    resources: Mapping[str, Mapping[str, int]], traits: Mapping[str, Iterable[str]], extra_specs: Mapping[str, str]
) -> Iterable[str]:
    suffixes = sorted({*resources, *traits})
    granular = 0
    for suffix in suffixes:
        amounts = [f"{name}:{amount}" for name, amount in sorted(resources.get(suffix, {}).items()) if amount]
        granular += bool(suffix and amounts)
        if amounts:
            yield f"resources{suffix}={','.join(amounts)}"
        if wanted := sorted(traits.get(suffix, ())):
            yield f"required{suffix}={','.join(wanted)}"
    if granular > 1:
        yield f"group_policy={extra_specs.get('group_policy', 'none')}"
