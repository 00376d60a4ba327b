"""Forty boots on twelve hosts: with the weigher, each lands on the host that Placement ranks first; without it, few."""

import contextlib
from collections import Counter
from collections.abc import Iterator

from tests.nova.cloud import NOVA_ALONE, NovaOnPlacement, our_server
from tests.postgresql import running_postgresql

MAX_INSTANCES = 6
"""Nova's filter NumInstancesFilter rejects hosts with this many; Placement knows nothing of it."""


class FortyBoots(NovaOnPlacement):
    """Boots of four flavors, and the hosts they should and do land on."""

    def setUp(self) -> None:
        self.landed: list[tuple[str, str, str]] = []
        super().setUp()

    def _configure(self) -> None:
        super()._configure()
        filters = ["ComputeFilter", "NumInstancesFilter"]
        self.flags(group="filter_scheduler", enabled_filters=filters, max_instances_per_host=MAX_INSTANCES)

    def boot_forty(self) -> None:
        """Boot, and note for each its flavor, its host, and the first of Placement's order that passed the filters."""
        flavors = {
            "small": self.flavor(2),
            "large": self.flavor(6),
            "numa": self.flavor(4, resources_CUSTOM_HUGE_PAGES="16"),
            "gpu": self.flavor(2, resources_PGPU="1"),
        }
        on_host: Counter[str] = Counter()
        for name in ["small", "large", "gpu", "numa", "small", "gpu", "small", "large", "numa", "small"] * 4:
            host = self.boot(flavors[name])
            ranked = [self.host_of[uuid] for uuid in self.relay.ranked]
            self.landed.append((name, host, next(host for host in ranked if on_host[host] < MAX_INSTANCES)))
            on_host[host] += 1

    def on_the_best(self) -> int:
        """Return how many landed on the first host of Placement's order that passed the filters."""
        return sum(host == best for _flavor, host, best in self.landed)

    def without_gpu_on_gpu_hosts(self) -> int:
        """Return how many of a flavor without GPUs landed on hosts with GPUs."""
        return sum(flavor != "gpu" and host.startswith("GpuHost") for flavor, host, _best in self.landed)


class WithTheWeigher(FortyBoots):
    """On SQLite."""

    def test_every_boot_lands_on_the_host_that_placement_ranks_first(self) -> None:
        self.boot_forty()
        assert self.on_the_best() == len(self.relay.decisions) == 40, self.landed
        assert self.without_gpu_on_gpu_hosts() == 0
        filtered = [decision for decision in self.relay.decisions if decision.best != decision.ranked[0]]
        assert filtered  # nova's filter rejected hosts that Placement ranks higher
        assert self.warnings() == []
        assert all(decision.headers["X-Openstack-Request-Id"].startswith("req-") for decision in self.relay.decisions)


class WithTheWeigherOnPostgreSQL(WithTheWeigher):
    """The same on PostgreSQL."""

    @contextlib.contextmanager
    def placement_server(self) -> Iterator[str]:
        with running_postgresql() as postgresql, our_server(postgresql.database("placement")) as url:
            yield url


class NovaAlone(FortyBoots):
    """Nova's own weighers."""

    weight_classes = NOVA_ALONE

    def test_without_the_weigher_few_boots_land_there(self) -> None:
        self.boot_forty()
        assert self.on_the_best() < 20, self.landed
        assert self.without_gpu_on_gpu_hosts() >= 10
        assert self.relay.decisions == []
