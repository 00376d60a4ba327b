"""The subjects of a round's requests: a few names, so that they often collide."""

import uuid
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from tests.clouds import SHARES
from tests.differential.requests import NO_BODY, Generation, Request

T = TypeVar("T")

NEWEST = 39
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "SRIOV_NET_VF", "CUSTOM_GOLD", "CUSTOM_IRON_1")
TRAITS = (
    *("HW_CPU_X86_AVX2", "HW_NUMA_ROOT", "STORAGE_DISK_SSD", "COMPUTE_VOLUME_MULTI_ATTACH"),
    *("CUSTOM_RED", "CUSTOM_BLUE_2"),
)
UNKNOWN_CLASS, UNKNOWN_TRAIT = "CUSTOM_NOWHERE", "CUSTOM_UNHEARD_OF"
CONSUMER_TYPES = ("INSTANCE", "MIGRATION", "VOLUME_1")
PROJECTS = ("project-1", "project-2")
USERS = ("user-1", "user-2")


class World:
    """The names of a round, and roughly what was done with them; failed requests are not tracked."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.classes = random.sample(CLASSES, random.randint(2, 5))
        self.traits = random.sample(TRAITS, random.randint(2, 5))
        self.aggregates = [self.new_uuid() for _ in range(random.randint(1, 4))]
        self.consumers = [self.new_uuid() for _ in range(random.randint(2, 6))]
        self.providers: list[str] = []
        self.parents: dict[str, str | None] = {}
        self.inventories: dict[str, list[str]] = {}
        self.traits_of: dict[str, list[str]] = {}
        self.aggregates_of: dict[str, list[str]] = {}

    def tree(self) -> list[str]:
        """Choose a tree and return its providers, so that a query can ask for what one tree provides."""
        if not self.providers:
            return []
        root = self._root(self.one(self.providers))
        return [node for node in self.providers if self._root(node) == root]

    def _root(self, node: str) -> str:
        while parent := self.parents.get(node):
            node = parent
        return node

    def new_uuid(self) -> str:
        """Return an unused uuid."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def chance(self, percent: float) -> bool:
        """Return true with the given probability."""
        return self.random.random() * 100 < percent

    def one(self, choices: Sequence[T]) -> T:
        """Return a random choice."""
        return self.random.choice(choices)

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """Return a few distinct choices, at least one."""
        return self.random.sample(choices, self.random.randint(1, min(most, len(choices))))

    def minor(self, least: int = 0, most: int = NEWEST) -> int:
        """Choose a microversion of a range, the newest more often than others."""
        if most == NEWEST and self.chance(40):
            return NEWEST
        return least if self.chance(15) else self.random.randint(least, most)

    def provider(self) -> str:
        """Choose a provider, very rarely one that does not exist."""
        return self.new_uuid() if not self.providers or self.chance(3) else self.one(self.providers)

    def resource_class(self, nodes: Sequence[str] = ()) -> str:
        """Choose a class, mostly one that some of the nodes have, very rarely an unknown one."""
        return UNKNOWN_CLASS if self.chance(1) else self._found_at(nodes, self.inventories, self.classes, 85)

    def trait(self, nodes: Sequence[str] = ()) -> str:
        """Choose a trait, often one that some of the nodes have, very rarely an unknown one."""
        if self.chance(5):
            return self.one((UNKNOWN_TRAIT, SHARES, SHARES))
        return self._found_at(nodes, self.traits_of, self.traits, 60)

    def aggregate(self, nodes: Sequence[str] = ()) -> str:
        """Choose an aggregate, often one with members, rarely one without."""
        return self.new_uuid() if self.chance(3) else self._found_at(nodes, self.aggregates_of, self.aggregates, 60)

    def _found_at(self, nodes: Sequence[str], kept: dict[str, list[str]], others: Sequence[str], percent: int) -> str:
        found = [name for node in nodes for name in kept.get(node, [])]
        return self.one(found if found and self.chance(percent) else others)

    def amount(self) -> int:
        """Choose an amount, usually a small one."""
        return self.random.choices((1, 2, 3, 4, 8, 100), (50, 25, 10, 8, 6, 1))[0]

    def provider_generation(self, provider: str) -> Generation:
        """Return a generation that is usually right."""
        return Generation("provider", provider, self.one((-1, 1, 7)) if self.chance(5) else 0)

    def consumer_generation(self, consumer: str) -> Generation:
        """Return a generation that is usually right."""
        return Generation("consumer", consumer, self.one((-1, 1, 7)) if self.chance(6) else 0)

    def request(self, method: str, path: str, minor: int, body: Any = NO_BODY, **more: Any) -> Request:
        """Return a request at a microversion."""
        return Request(method, path, f"1.{minor}", body=body, **more)
