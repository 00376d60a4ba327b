"""What must hold after a load, whatever happened during it."""

from collections import defaultdict
from itertools import pairwise

from tests.survival.history import is_linearizable
from tests.survival.load import HOST_VCPUS, Client, Record, send


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
