"""Twenty writes, each of which meets all others in the small cloud of scene.py."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.claims import OWNER, entry, old_entry
from tests.interleavings.scene import Scene


class Request(NamedTuple):
    """A request to send."""

    method: str
    path: str
    body: object = None
    version: str = "1.39"


Operation = Callable[[Scene], Request]


def claim(scene: Scene) -> Request:
    """Take all that is left of the host."""
    return Request("PUT", f"/allocations/{scene['newcomer']}", entry({scene["host"]: {"VCPU": 2}}))


def claim_elsewhere(scene: Scene) -> Request:
    """Make the same consumer on another host."""
    return Request("PUT", f"/allocations/{scene['newcomer']}", entry({scene["spare"]: {"VCPU": 1}}))


def claim_of_two_hosts(scene: Scene) -> Request:
    """Take all that is left of two hosts, naming the second one first, for a project that is new as well."""
    shares = {scene["spare"]: {"VCPU": 1}, scene["host"]: {"VCPU": 2}}
    body = entry(shares, project_id=scene["neighbour"], user_id=scene["neighbour"])
    return Request("PUT", f"/allocations/{scene['neighbour']}", body)


def resize(scene: Scene) -> Request:
    """Let the tenant grow into all that is left."""
    return Request("PUT", f"/allocations/{scene['tenant']}", entry({scene["host"]: {"VCPU": 4}}, 1))


def resize_of_old(scene: Scene) -> Request:
    """Let the tenant grow without naming its generation."""
    body = old_entry({scene["host"]: {"VCPU": 3}})
    return Request("PUT", f"/allocations/{scene['tenant']}", body, "1.12")


def release(scene: Scene) -> Request:
    """Delete what the tenant holds."""
    return Request("DELETE", f"/allocations/{scene['tenant']}")


def claim_for_two(scene: Scene) -> Request:
    """Claim for two new consumers at once."""
    shares = {"newcomer": {scene["host"]: {"VCPU": 1}}, "neighbour": {scene["spare"]: {"VCPU": 1}}}
    return Request("POST", "/allocations", {scene[label]: entry(share) for label, share in shares.items()})


def migrate(scene: Scene) -> Request:
    """Give what the tenant holds to a migration, and the tenant another host, as nova does."""
    body = {
        scene["tenant"]: entry({scene["spare"]: {"VCPU": 1}}, 1),
        scene["migration"]: entry({scene["host"]: {"VCPU": 2}, scene["numa"]: {"VGPU": 1}}, consumer_type="MIGRATION"),
    }
    return Request("POST", "/allocations", body)


def swap(scene: Scene) -> Request:
    """Let two consumers change places."""
    body = {
        scene["tenant"]: entry({scene["spare"]: {"VCPU": 3}}, 1),
        scene["lodger"]: entry({scene["host"]: {"VCPU": 2}}, 1),
    }
    return Request("POST", "/allocations", body)


def reshape(scene: Scene) -> Request:
    """Move an inventory from a part of the host to the host, with the tenant."""
    records = {"VCPU": {"total": 4}, "DISK_GB": {"total": 10}, "VGPU": {"total": 2}}
    body = {
        "inventories": {
            scene["numa"]: {"resource_provider_generation": scene.generations["numa"], "inventories": {}},
            scene["host"]: {"resource_provider_generation": scene.generations["host"], "inventories": records},
        },
        "allocations": {scene["tenant"]: entry({scene["host"]: {"VCPU": 2, "VGPU": 1}}, 1)},
    }
    return Request("POST", "/reshaper", body)


def shrink(scene: Scene) -> Request:
    """Leave the host only what the tenant holds."""
    return _put(scene, "host", "inventories", inventories={"VCPU": {"total": 2}})


def add_inventory(scene: Scene) -> Request:
    """Give a host a further class."""
    body = {"resource_class": "MEMORY_MB", "total": 1024}
    return Request("POST", f"/resource_providers/{scene['spare']}/inventories", body)


def delete_inventory(scene: Scene) -> Request:
    """Delete an inventory that the tenant uses, unless it is gone by then."""
    return Request("DELETE", f"/resource_providers/{scene['numa']}/inventories/VGPU")


def replace_traits(scene: Scene) -> Request:
    """Give the host other traits."""
    return _put(scene, "host", "traits", traits=["HW_CPU_X86_AVX2"])


def replace_aggregates(scene: Scene) -> Request:
    """Put a host into a new aggregate."""
    return _put(scene, "spare", "aggregates", aggregates=[scene["zone"]])


def create_child(scene: Scene) -> Request:
    """Create a provider below the empty one."""
    body = {"name": scene.name("child"), "uuid": scene["child"], "parent_provider_uuid": scene["empty"]}
    return Request("POST", "/resource_providers", body)


def move_provider(scene: Scene) -> Request:
    """Put the empty provider below a host."""
    body = {"name": scene.name("empty"), "parent_provider_uuid": scene["spare"]}
    return Request("PUT", f"/resource_providers/{scene['empty']}", body)


def delete_provider(scene: Scene) -> Request:
    """Delete the empty provider."""
    return Request("DELETE", f"/resource_providers/{scene['empty']}")


def planner_claim(scene: Scene) -> Request:
    """Let the planner take all that is left of the host."""
    return Request("POST", "/planner/v1/claims", {**_on_host(scene, 2), "consumer": _consumer(scene, "planned")})


def gang(scene: Scene) -> Request:
    """Let the planner place two consumers, both or none."""
    members = [{"consumer": _consumer(scene, label), "request": _on_host(scene, 1)} for label in ("first", "second")]
    return Request("POST", "/planner/v1/claims", {"members": members})


def _put(scene: Scene, provider: str, what: str, **document: Any) -> Request:
    body = {"resource_provider_generation": scene.generations[provider], **document}
    return Request("PUT", f"/resource_providers/{scene[provider]}/{what}", body)


def _on_host(scene: Scene, vcpus: int) -> dict[str, Any]:
    return {"groups": {"": {"resources": {"VCPU": vcpus}, "in_tree": scene["host"]}}}


def _consumer(scene: Scene, label: str) -> dict[str, Any]:
    return {"uuid": scene[label], **OWNER, "consumer_type": "INSTANCE", "consumer_generation": None}


OPERATIONS: Mapping[str, Operation] = {
    operation.__name__: operation
    for operation in (
        claim,
        claim_elsewhere,
        claim_of_two_hosts,
        resize,
        resize_of_old,
        release,
        claim_for_two,
        migrate,
        swap,
        reshape,
        shrink,
        add_inventory,
        delete_inventory,
        replace_traits,
        replace_aggregates,
        create_child,
        move_provider,
        delete_provider,
        planner_claim,
        gang,
    )
}
