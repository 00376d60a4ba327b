"""What nova itself asks of Placement for a flavor, and random flavors with every extra spec that nova documents."""

import random
import re
from collections.abc import Iterator
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl

from nova import context, exception, objects
from nova.api.validation.extra_specs import validators
from nova.scheduler import request_filter
from nova.scheduler.utils import ResourceRequest
from nova.virt import hardware
from oslo_utils import strutils

from placement.formats.flavors import Flavor

COMPUTES = "nova.objects.service.get_minimum_version_all_cells"
STATELESS = ("amd-sev-snp", "intel-tdx")
VALUES = {
    "group_policy": ["none", "isolate", "isolate", "any"],
    "hw:cpu_dedicated_mask": ["0", "0-1", "^0", "0-3,^1", "^0-1,^3", "9", "1-0", "a"],
    "hw:cpu_realtime_mask": ["0", "^0", "0-1,^0", "^0-63", "x"],
    "hw:cpu_policy": ["dedicated", "mixed", "mixed", "shared", "pinned"],
    "hw:mem_encryption_model": ["amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx", "none"],
    "hw:ephemeral_encryption_format": ["plain", "luks", "luksv2", "gpg"],
    "hw:mem_page_size": ["large"],
    "hw:numa_nodes": ["1"],
    "hw:pmem": ["4GB", "4GB,SMALL", " 4GB , 4GB", ","],
    "hw:tpm_model": ["tpm-tis", "tpm-crb"],
    "hw:tpm_version": ["1.2", "2.0", "2.0", "3"],
}
"""Values that are more telling than what the documented form allows."""

NEVER = ("hw:numa_cpus.", "hw:numa_mem.", "hw:cpu_max_", "hw:mem_encryption_")
"""Extra specs whose validity is a matter of the topology inside a host; encryption is drawn as a pair."""


def asked_by_nova(flavor: Flavor, *, owner: bool = False) -> dict[str, frozenset[str]] | None:
    """Return the query's parameters that nova sends for a flavor, None if nova or Placement refuses it."""
    try:
        asked = parameters(_query(flavor, owner=owner))
    except exception.NovaException:
        return None
    groups = [name for name in asked if re.fullmatch("resources.+", name)]
    refused = frozenset([""]) in asked.values() or (len(groups) > 1 and "group_policy" not in asked)
    return None if refused else asked


def parameters(query: str) -> dict[str, frozenset[str]]:
    """Return what a query string asks for, without the limit."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return {name: frozenset(value.split(",")) for name, value in pairs if name != "limit"}


def _query(flavor: Flavor, *, owner: bool) -> str:
    nova_flavor = objects.Flavor(
        name="drawn",
        vcpus=flavor.vcpus,
        memory_mb=flavor.ram,
        root_gb=flavor.disk,
        ephemeral_gb=flavor.ephemeral,
        swap=flavor.swap,
        extra_specs=dict(flavor.extra_specs),
    )
    image = _image_for(flavor)
    spec = objects.RequestSpec(
        flavor=nova_flavor,
        image=image,
        is_bfv=False,
        availability_zone=None,
        requested_networks=objects.NetworkRequestList(objects=[]),
        request_level_params=objects.RequestLevelParams(),
    )
    hardware.numa_get_constraints(nova_flavor, image)
    with mock.patch(COMPUTES, return_value=request_filter.MIN_COMPUTE_VERSION_OWNER_TRAIT if owner else 0):
        request_filter.process_reqspec(context.get_admin_context(), spec)
    text: str = ResourceRequest.from_request_spec(spec).to_querystring()
    return text


def _image_for(flavor: Flavor) -> Any:
    """Return an image without requirements, except for those that nova demands for encrypted memory."""
    properties: dict[str, Any] = {}
    if strutils.bool_from_string(flavor.extra_specs.get("hw:mem_encryption")):
        properties = {"hw_firmware_type": "uefi", "hw_machine_type": "q35"}
        if flavor.extra_specs.get("hw:mem_encryption_model") in STATELESS:
            properties |= {"hw_firmware_stateless": True, "hw_video_model": "none"}
    return objects.ImageMeta(id="8d7b1f60-7c3d-4a52-a5f4-2b3d5c9f1e10", properties=objects.ImageMetaProps(**properties))


def documented_specs() -> list[Any]:
    """Return nova's descriptions of extra specs."""
    return [each for each in validators.VALIDATORS.values() if not each.name.startswith(NEVER)]


def random_flavors(number: int, chance: random.Random) -> Iterator[Flavor]:
    """Yield flavors: each documented extra spec comes up, those that Placement sees more often."""
    documented = documented_specs()
    weights = [0.3 if each.name.startswith(("trait", "resources")) else 6 for each in documented]
    for _ in range(number):
        vcpus = chance.choice([1, 2, 4, 4, 8])
        specs: dict[str, str] = {}
        for each in chance.choices(documented, weights, k=chance.randrange(8)):
            specs[_name(each, chance)] = _value(each, chance)
        specs |= _processors(vcpus, chance) | _encryption(chance)
        yield Flavor(
            vcpus,
            chance.choice([512, 2048]),
            chance.choice([0, 20]),
            chance.choice([0, 0, 5]),
            chance.choice([0, 0, 512, 1025]),
            dict(chance.sample(sorted(specs.items()), len(specs))),
        )


def _name(each: Any, chance: random.Random) -> str:
    group = chance.choice(["", "", "1", "2", "_NET"])
    name = each.name.replace("{group}", group).replace("{resource}", "GPU").replace("{trait}", "FAST")
    return re.sub(r"\{\w+\}", "0", name)


def _value(each: Any, chance: random.Random) -> str:
    if each.name in VALUES:
        return chance.choice(VALUES[each.name])
    if each.value["type"] is bool:
        return chance.choice(["true", "Yes", "1", "false", "0", "maybe"])
    if each.value["type"] is int:
        return chance.choice(["0", "1", "2", "3", "-1", "many"])
    return chance.choice([*each.value.get("enum", ["a"]), *(["other"] if chance.random() < 0.1 else [])])


def _processors(vcpus: int, chance: random.Random) -> dict[str, str]:
    """Return extra specs about processors, mostly such that nova accepts them."""
    drawn: list[dict[str, str]] = [
        {},
        {},
        {"hw:cpu_policy": "dedicated"},
        {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"},
        {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": chance.choice(["0", "^0", "0-1"])},
        {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"},
        {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": chance.choice(["isolate", "require", "prefer"])},
        {"resources:PCPU": str(vcpus)},
        {"resources1:PCPU": str(vcpus), "trait1:HW_CPU_HYPERTHREADING": "required"},
        {"resources1:VCPU": chance.choice(["1", str(vcpus)])},
        {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0", "resources:CUSTOM_METAL": "1"},
    ]
    return chance.choice(drawn)


def _encryption(chance: random.Random) -> dict[str, str]:
    if chance.random() < 0.9:
        return {}
    model = chance.choice([*VALUES["hw:mem_encryption_model"], ""])
    return {"hw:mem_encryption": chance.choice(["true", "on", "1", "no"]), "hw:mem_encryption_model": model}


objects.register_all()
