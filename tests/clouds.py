"""Clouds written as tree literals, and how to build them with plain requests.

A cloud is a few root providers; each provider names its inventories, traits, aggregates (by a label) and children::

    provider("CN1", provider("NUMA0", VCPU=8), provider("NUMA1", VCPU=8), DISK_GB=1000, aggregates="A")
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHARES = "MISC_SHARES_VIA_AGGREGATE"

Call = Callable[..., tuple[int, Any]]
"""call(method, path, version, body) -> (status, document), as user admin."""

Inventory = int | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider and everything below it."""

    name: str
    children: tuple["Provider", ...] = ()
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


def provider(
    name: str, *children: Provider, traits: Sequence[str] = (), aggregates: Sequence[str] = (), **inventories: Inventory
) -> Provider:
    """Describe a provider; an inventory is a total, or a mapping with a total and non-default fields."""
    return Provider(name, children, inventories, tuple(traits), tuple(aggregates))


@dataclass(frozen=True, slots=True)
class Cloud:
    """What was built: the uuid of each provider name and of each aggregate label."""

    providers: Mapping[str, str]
    aggregates: Mapping[str, str]

    def name_of(self, provider_uuid: str) -> str:
        """Return the name that a provider has in the literal."""
        return next(name for name, known in self.providers.items() if known == provider_uuid)


class RequestRefused(Exception):
    """The server refused a request that creates a cloud."""


def build(call: Call, *roots: Provider, aggregates: Mapping[str, str] | None = None) -> Cloud:
    """Create the providers over HTTP, parents first, with one write for each inventory, and one for traits."""
    labels = {label for _, node in walk(roots) for label in node.aggregates}
    known = {label: str(uuid.uuid4()) for label in sorted(labels)} | dict(aggregates or {})
    cloud = Cloud({node.name: str(uuid.uuid4()) for _, node in walk(roots)}, known)
    _make_custom_names(call, roots)
    for parent, node in walk(roots):
        _make_provider(call, cloud, node, parent)
    return cloud


def walk(roots: Sequence[Provider], parent: Provider | None = None) -> Iterator[tuple[Provider | None, Provider]]:
    """Yield (parent, provider) for every provider, parents before children."""
    for node in roots:
        yield parent, node
        yield from walk(node.children, node)


def allocate(call: Call, provider_uuid: str, resources: Mapping[str, int], **consumer: str) -> str:
    """Claim resources of one provider for a new consumer and return the consumer's uuid."""
    names = {"consumer": str(uuid.uuid4()), "project": "project", "user": "user"} | consumer
    body = {
        "allocations": {provider_uuid: {"resources": dict(resources)}},
        "project_id": names["project"],
        "user_id": names["user"],
    }
    expect(call, "PUT", f"/allocations/{names['consumer']}", "1.12", body)
    return names["consumer"]


def expect(call: Call, method: str, path: str, version: str, body: object = None) -> Any:
    """Send a request that must succeed and return the answer's document."""
    status, document = call(method, path, version, body)
    if not 200 <= status < 300:
        raise RequestRefused(f"{method} {path} (microversion {version}) answered {status}: {document}")
    return document


def _make_custom_names(call: Call, roots: Sequence[Provider]) -> None:
    nodes = [node for _, node in walk(roots)]
    classes = {name for node in nodes for name in node.inventories if name.startswith("CUSTOM_")}
    traits = {name for node in nodes for name in node.traits if name.startswith("CUSTOM_")}
    for name in sorted(classes):
        expect(call, "PUT", f"/resource_classes/{name}", "1.7")
    for name in sorted(traits):
        expect(call, "PUT", f"/traits/{name}", "1.6")


def _make_provider(call: Call, cloud: Cloud, node: Provider, parent: Provider | None) -> None:
    """Create one provider; its generation ends as the number of its inventories, plus one if it has traits."""
    identity = cloud.providers[node.name]
    body = {"name": node.name, "uuid": identity}
    if parent is not None:
        body["parent_provider_uuid"] = cloud.providers[parent.name]
    expect(call, "POST", "/resource_providers", "1.14", body)
    path = f"/resource_providers/{identity}"
    if node.aggregates:
        # Before 1.19 this does not change the generation.
        expect(call, "PUT", f"{path}/aggregates", "1.1", [cloud.aggregates[label] for label in node.aggregates])
    for name, inventory in node.inventories.items():
        fields = {"total": inventory} if isinstance(inventory, int) else inventory
        record = {"resource_class": name, "max_unit": fields["total"], **fields}
        expect(call, "POST", f"{path}/inventories", "1.0", record)
    if node.traits:
        traits = {"resource_provider_generation": len(node.inventories), "traits": list(node.traits)}
        expect(call, "PUT", f"{path}/traits", "1.6", traits)
