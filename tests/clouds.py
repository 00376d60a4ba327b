"""Clouds written as tree literals, and how to build them with plain requests.

A cloud is a few root providers; each provider names its inventories, traits, aggregates (by a label) and children::

    provider("CN1", provider("NUMA0", VCPU=8), provider("NUMA1", VCPU=8), DISK_GB=1000, aggregates="A")

or, in a table in YAML, ``CN1: {has: {DISK_GB: 1000}, aggregates: [A], inside: {NUMA0: {has: {VCPU: 8}}}}``.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.claims import old_entry
from tests.http_calls import Call, ask

SHARES = "MISC_SHARES_VIA_AGGREGATE"

Inventory = int | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider and everything below it."""

    name: str
    children: tuple["Provider", ...] = ()
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()

    def stocks(self) -> dict[str, dict[str, Any]]:
        """Return the fields of its inventories; none may be taken beyond its total at once."""
        every = {name: {"total": of} if isinstance(of, int) else of for name, of in self.inventories.items()}
        return {name: {"max_unit": fields["total"], **fields} for name, fields in every.items()}


def provider(
    name: str, *children: Provider, traits: Sequence[str] = (), aggregates: Sequence[str] = (), **inventories: Inventory
) -> Provider:
    """Describe a provider; an inventory is a total, or a mapping with a total and non-default fields."""
    return Provider(name, children, inventories, tuple(traits), tuple(aggregates))


def trees(written: Mapping[str, Any]) -> tuple[Provider, ...]:
    """Return the providers that a table describes by name."""
    return tuple(
        Provider(
            name,
            trees(said.get("inside", {})),
            said.get("has", {}),
            tuple(said.get("traits", ())),
            tuple(said.get("aggregates", ())),
        )
        for name, said in written.items()
    )


@dataclass(frozen=True, slots=True)
class Cloud:
    """What was built: the uuid of each provider name and of each aggregate label."""

    providers: Mapping[str, str]
    aggregates: Mapping[str, str]

    @classmethod
    def of(cls, roots: Sequence[Provider], aggregates: Mapping[str, str] | None) -> "Cloud":
        """Return new uuids for providers, and for the labels that have none yet."""
        nodes = [node for _, node in walk(roots)]
        labels = {label: str(uuid.uuid4()) for node in nodes for label in node.aggregates}
        return cls({node.name: str(uuid.uuid4()) for node in nodes}, labels | dict(aggregates or {}))

    def name_of(self, provider_uuid: str) -> str:
        """Return the name that a provider has in the literal."""
        return next(name for name, known in self.providers.items() if known == provider_uuid)


def walk(roots: Sequence[Provider], parent: Provider | None = None) -> Iterator[tuple[Provider | None, Provider]]:
    """Yield (parent, provider) for every provider, parents before children."""
    for node in roots:
        yield parent, node
        yield from walk(node.children, node)


def custom_names(roots: Sequence[Provider]) -> tuple[list[str], list[str]]:
    """Return the custom classes and the custom traits that occur in trees."""
    nodes = [node for _, node in walk(roots)]
    classes = {name for node in nodes for name in node.inventories if name.startswith("CUSTOM_")}
    traits = {name for node in nodes for name in node.traits if name.startswith("CUSTOM_")}
    return sorted(classes), sorted(traits)


def build(call: Call, *roots: Provider, aggregates: Mapping[str, str] | None = None) -> Cloud:
    """Create the providers over HTTP, parents first, with one write for each inventory, and one for traits."""
    cloud, (classes, traits) = Cloud.of(roots, aggregates), custom_names(roots)
    for name in classes:
        ask(call, "PUT", f"/resource_classes/{name}", "1.7")
    for name in traits:
        ask(call, "PUT", f"/traits/{name}", "1.6")
    for parent, node in walk(roots):
        _make_provider(call, cloud, node, parent)
    return cloud


def allocate(call: Call, provider_uuid: str, resources: Mapping[str, int], **consumer: str) -> str:
    """Claim resources of one provider for a new consumer and return the consumer's uuid."""
    names = {"consumer": str(uuid.uuid4()), "project": "project", "user": "user"} | consumer
    body = old_entry({provider_uuid: dict(resources)}, project_id=names["project"], user_id=names["user"])
    ask(call, "PUT", f"/allocations/{names['consumer']}", "1.12", body)
    return names["consumer"]


def _make_provider(call: Call, cloud: Cloud, node: Provider, parent: Provider | None) -> None:
    """Create one provider; its generation ends as the number of its inventories, plus one if it has traits."""
    identity = cloud.providers[node.name]
    body = {"name": node.name, "uuid": identity}
    if parent is not None:
        body["parent_provider_uuid"] = cloud.providers[parent.name]
    ask(call, "POST", "/resource_providers", "1.14", body)
    path = f"/resource_providers/{identity}"
    if node.aggregates:
        # Before 1.19 this does not change the generation.
        ask(call, "PUT", f"{path}/aggregates", "1.1", [cloud.aggregates[label] for label in node.aggregates])
    for name, fields in node.stocks().items():
        ask(call, "POST", f"{path}/inventories", "1.0", {"resource_class": name, **fields})
    if node.traits:
        traits = {"resource_provider_generation": len(node.inventories), "traits": list(node.traits)}
        ask(call, "PUT", f"{path}/traits", "1.6", traits)
