"""Clients that claim, move, release, reshape and change inventories, and what must hold of what they were answered.

Consumers are grouped in twos, each group with its own pair of providers between which reshapes move an inventory.
Everything else is allocated from hosts that all groups share and that have too little for all. So each group has its
own history, and the groups compete.
"""

import http.client
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Self

from tests.claims import OWNER, entry, new_uuid
from tests.http_calls import TIMEOUT_S, Answer, HttpCalls, Unreachable
from tests.survival.history import LOST, NOTHING, Operation, Register, Shares, is_linearizable

HOST_VCPUS = 20
PAUSE_AFTER_ERROR_S = 0.1


class Broken(Exception):
    """There was no answer. ``was_sent`` tells whether the server may have received the request."""

    def __init__(self, *, was_sent: bool) -> None:
        self.was_sent = was_sent


def send(url: str, method: str, path: str, body: object = None) -> Answer:
    """Send one request as nova would.

    Raises:
        Broken: the server cannot be reached, or closed the connection.
    """
    try:
        return HttpCalls(url, "admin,service").ask(method, path, body=body)
    except Unreachable as error:
        raise Broken(was_sent=False) from error
    except (OSError, http.client.HTTPException) as error:
        raise Broken(was_sent=True) from error


Work = Callable[[Callable[[], bool]], object]
"""A client's work; it is given a function that returns whether to end."""


class AtWork:
    """Clients that work as long as the context lasts; the first failure of one ends them all.

    ``longest_s`` is how long a request may take.
    """

    def __init__(self, clients: Iterable[Work], *, longest_s: float) -> None:
        self._enough = threading.Event()
        self._failures: list[BaseException] = []
        self._longest_s = longest_s
        self._threads = [threading.Thread(target=self._run, args=(client,)) for client in clients]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join(2 * self._longest_s)
        assert not self._failures, self._failures
        assert not any(thread.is_alive() for thread in self._threads), "a request is still waiting"

    @property
    def has_failed(self) -> bool:
        """Whether a client has failed."""
        return bool(self._failures)

    def _run(self, client: Work) -> None:
        try:
            client(self._enough.is_set)
        except BaseException as failure:
            self._failures.append(failure)
            self._enough.set()


@dataclass(slots=True)
class Group:
    """Two consumers, their own two providers, and their history."""

    consumers: tuple[str, str]
    devices: tuple[str, str]
    history: list[Operation] = field(default_factory=list)


class InventoryWrite(NamedTuple):
    """An acknowledged change of a host's MEMORY_MB: when it was sent and answered, and the generation after it."""

    host: str
    start: float
    end: float
    generation: int


@dataclass(slots=True)
class Record:
    """The actions of all clients together."""

    groups: list[Group]
    hosts: list[str]
    statuses: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    """How often each server gave no answer."""
    complaints: list[str] = field(default_factory=list)
    inventory_writes: list[InventoryWrite] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)
    """The times at which writes were acknowledged."""


def prepared(url: str, *, groups: int = 3, hosts: int = 2) -> Record:
    """Create the providers, and return an empty record for them."""
    made = Record([], [_provider(url, VCPU=HOST_VCPUS, MEMORY_MB=1000) for _ in range(hosts)])
    for _ in range(groups):
        devices = (_provider(url, PGPU=8), _provider(url, DISK_GB=1))
        made.groups.append(Group((new_uuid(), new_uuid()), devices))
    return made


def _provider(url: str, **totals: int) -> str:
    uuid = new_uuid()
    body = {"name": uuid, "uuid": uuid}
    assert send(url, "POST", "/resource_providers", body).status == 200
    inventories = {name: {"total": total} for name, total in totals.items()}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    assert send(url, "PUT", f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def shares_of(document: Mapping[str, Any]) -> Shares:
    """Return what an answer of GET /allocations/{consumer} says the consumer holds."""
    held = document["allocations"].items()
    return frozenset((uuid, name, amount) for uuid, share in held for name, amount in share["resources"].items())


def body_of(generation: int | None, shares: Shares) -> dict[str, Any]:
    """Return the part of a body that gives a consumer these shares."""
    by_provider: dict[str, dict[str, int]] = {}
    for uuid, name, amount in shares:
        by_provider.setdefault(uuid, {})[name] = amount
    return entry(by_provider, generation)


class Client:
    """A client that switches to the next server when one fails."""

    def __init__(self, record: Record, group: Group, urls: Sequence[str], seed: int) -> None:
        self._record = record
        self._group = group
        self._urls = urls
        self._choice = random.Random(seed)
        self._at = seed % len(urls)
        self._steps = (
            self._claim,
            self._claim,
            self._claim_gang,
            self._release,
            self._move,
            self._reshape,
            self._set_memory,
            self._look_for_candidates,
        )

    def run(self, until: Callable[[], bool]) -> None:
        """Work until told to stop."""
        while not until():
            try:
                self._choice.choice(self._steps)()
            except Broken:
                self._at = (self._at + 1) % len(self._urls)
                time.sleep(PAUSE_AFTER_ERROR_S)

    def read(self, consumer: str) -> Register:
        """Return what a consumer holds, and record it."""
        start = time.monotonic()
        answer = self._send("GET", f"/allocations/{consumer}")
        register = Register(answer.document.get("consumer_generation"), shares_of(answer.document))
        self._group.history.append(Operation(start, time.monotonic(), {consumer: register}))
        return register

    def _send(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request; any answer except success and justified refusals is recorded as a complaint."""
        try:
            answer = send(self._urls[self._at], method, path, body)
        except Broken:
            self._record.statuses["broken"] += 1
            self._record.broken[self._urls[self._at]] += 1
            raise
        self._record.statuses[f"{method} {answer.status}"] += 1
        is_fair = answer.status < 300 or answer.status == 409
        if not is_fair and not (answer.status == 503 and "retry-after" in answer.headers):
            self._record.complaints.append(f"{method} {path} {answer}")
        if answer.status >= 500:
            raise Broken(was_sent=True)
        return answer

    def _write(self, method: str, path: str, body: object, changes: dict[str, tuple[Register, Shares]]) -> None:
        seen = {name: before for name, (before, _) in changes.items()}
        written = {name: shares for name, (_, shares) in changes.items()}
        start = time.monotonic()
        try:
            answer = self._send(method, path, body)
        except Broken as broken:
            if broken.was_sent:
                self._group.history.append(Operation(start, LOST, seen, written))
            raise
        # 200: another client has made the same planner claim, and nothing was written.
        if answer.status in (201, 204):
            end = time.monotonic()
            self._group.history.append(Operation(start, end, seen, written))
            self._record.acknowledged.append(end)

    def _shares(self) -> Shares:
        hosts = self._choice.sample(self._record.hosts, self._choice.choice((1, 1, 2)))
        shares = {(host, "VCPU", self._choice.randint(1, 9)) for host in hosts}
        if self._choice.random() < 0.5:
            shares.add((self._choice.choice(self._group.devices), "PGPU", 1))
        return frozenset(shares)

    def _claim(self) -> None:
        self._replace(self._choice.choice(self._group.consumers), self._shares())

    def _claim_gang(self) -> None:
        """Let the planner place both consumers, or neither, whatever they hold; each names its host."""
        changes = {consumer: (self.read(consumer), self._share_of_a_host()) for consumer in self._group.consumers}
        self._write("POST", "/planner/v1/claims", _gang(changes), changes)

    def _share_of_a_host(self) -> Shares:
        return frozenset({(self._choice.choice(self._record.hosts), "VCPU", self._choice.randint(1, 9))})

    def _release(self) -> None:
        self._replace(self._choice.choice(self._group.consumers), NOTHING)

    def _replace(self, consumer: str, shares: Shares) -> None:
        before = self.read(consumer)
        if shares or before.shares:
            body = body_of(before.generation, shares)
            self._write("PUT", f"/allocations/{consumer}", body, {consumer: (before, shares)})

    def _move(self) -> None:
        """Transfer what one consumer holds to the other, and allocate something new for the first, in one request."""
        source, target = self._choice.sample(self._group.consumers, 2)
        held, there = self.read(source), self.read(target)
        if held.shares:
            changes = {source: (held, self._shares()), target: (there, held.shares)}
            self._write("POST", "/allocations", _bodies(changes), changes)

    def _reshape(self) -> None:
        """Move the PGPU inventory to the other device, with its allocations."""
        devices = {uuid: self._inventories(uuid) for uuid in self._group.devices}
        source = next((uuid for uuid, found in devices.items() if "PGPU" in found["inventories"]), None)
        if source is None:
            return
        target = next(uuid for uuid in devices if uuid != source)
        before = {consumer: self.read(consumer) for consumer in self._group.consumers}
        changes = {
            consumer: (
                register,
                frozenset((target if uuid == source else uuid, *rest) for uuid, *rest in register.shares),
            )
            for consumer, register in before.items()
            if any(uuid == source for uuid, _, _ in register.shares)
        }
        body = {
            "inventories": {
                source: devices[source] | {"inventories": {"DISK_GB": {"total": 1}}},
                target: devices[target] | {"inventories": {"PGPU": {"total": 8}}},
            },
            "allocations": _bodies(changes),
        }
        self._write("POST", "/reshaper", body, changes)

    def _inventories(self, uuid: str) -> dict[str, Any]:
        document: dict[str, Any] = self._send("GET", f"/resource_providers/{uuid}/inventories").document
        return document

    def _look_for_candidates(self) -> None:
        self._send("GET", f"/allocation_candidates?resources=VCPU:{self._choice.randint(1, 9)}&limit=10")

    def _set_memory(self) -> None:
        host = self._choice.choice(self._record.hosts)
        found = self._inventories(host)
        body = {
            "resource_provider_generation": found["resource_provider_generation"],
            "total": self._choice.randint(1, 1000),
        }
        start = time.monotonic()
        answer = self._send("PUT", f"/resource_providers/{host}/inventories/MEMORY_MB", body)
        if answer.status == 200:
            end = time.monotonic()
            generation = answer.document["resource_provider_generation"]
            self._record.inventory_writes.append(InventoryWrite(host, start, end, generation))
            self._record.acknowledged.append(end)


def _bodies(changes: Mapping[str, tuple[Register, Shares]]) -> dict[str, Any]:
    return {consumer: body_of(before.generation, shares) for consumer, (before, shares) in changes.items()}


class Crowd(AtWork):
    """Clients at work, two for each group."""

    def __init__(self, record: Record, urls: Sequence[str], *, seed: int, per_group: int = 2) -> None:
        groups = [group for group in record.groups for _ in range(per_group)]
        clients = [Client(record, group, urls, seed + number) for number, group in enumerate(groups)]
        super().__init__([client.run for client in clients], longest_s=TIMEOUT_S)


def wait_for(record: Record, count: int, *, timeout_s: float) -> None:
    """Wait until this many more writes have been acknowledged."""
    goal, deadline = len(record.acknowledged) + count, time.monotonic() + timeout_s
    while len(record.acknowledged) < goal:
        assert time.monotonic() < deadline, f"no progress: {record.statuses} {record.complaints[:3]}"
        time.sleep(0.005)


def _gang(changes: Mapping[str, tuple[Register, Shares]]) -> dict[str, Any]:
    """Return the body of a claim that gives each consumer its share of one host, in place of what it holds."""
    members = []
    for consumer, (before, shares) in changes.items():
        [(host, name, amount)] = shares
        who = {"uuid": consumer, "consumer_generation": before.generation, "consumer_type": "INSTANCE", **OWNER}
        group = {"resources": {name: amount}, "in_tree": host}
        members.append({"consumer": who, "request": {"groups": {"": group}}})
    return {"members": members, "replaces": True}


def check(record: Record, url: str) -> None:
    """Check the record against itself and against what a server shows after all writing has ended."""
    assert record.complaints == []
    for group in record.groups:
        reader = Client(record, group, [url], 0)
        for consumer in group.consumers:
            reader.read(consumer)
        assert is_linearizable(group.history), f"nothing explains what {group.consumers} were answered"
    _check_usage(record, url)
    _check_generations(record, url)


def _check_usage(record: Record, url: str) -> None:
    """Check that usage is what the consumers hold, and that no provider exceeds its capacity."""
    held: defaultdict[tuple[str, str], int] = defaultdict(int)
    for group in record.groups:
        for consumer in group.consumers:
            for uuid, share in send(url, "GET", f"/allocations/{consumer}").document["allocations"].items():
                for name, amount in share["resources"].items():
                    held[uuid, name] += amount
    providers = [*record.hosts, *(uuid for group in record.groups for uuid in group.devices)]
    for uuid in providers:
        for name, used in send(url, "GET", f"/resource_providers/{uuid}/usages").document["usages"].items():
            assert used == held[uuid, name]
    for uuid in record.hosts:
        assert held[uuid, "VCPU"] <= HOST_VCPUS


def _check_generations(record: Record, url: str) -> None:
    """Check that no two changes of an inventory led to one generation, and that none of them was lost."""
    for host in record.hosts:
        writes = sorted((write for write in record.inventory_writes if write.host == host), key=lambda w: w.generation)
        generations = [write.generation for write in writes]
        assert len(set(generations)) == len(generations)
        for earlier, later in pairwise(writes):
            assert earlier.start <= later.end, "generations go back in time"
        now = send(url, "GET", f"/resource_providers/{host}/inventories").document["resource_provider_generation"]
        assert now >= max(generations, default=0)
