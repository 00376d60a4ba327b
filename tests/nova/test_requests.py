"""What is more than one boot: several instances in one request, moves, server groups, aggregates, profiles."""

from collections.abc import Sequence

from tests.nova.cloud import PLACEMENT_ALONE, NovaOnPlacement

GROUPS = "nova.scheduler.weights.affinity"


class Requests(NovaOnPlacement):
    """Placement's weigher alone."""

    number_of_hosts = 6

    def test_instances_of_one_request_see_what_the_earlier_ones_took(self) -> None:
        body = self._build_server(flavor_id=self.flavor(2), networks="none")
        self.api.post_server({"server": {**body, "min_count": 8, "max_count": 8}})
        servers = [self._wait_for_state_change(server, "ACTIVE") for server in self.api.get_servers()]
        weighed = self.relay.decisions[:8]  # nova weighs once more, for alternates
        assert self.relay.claimed == [decision.best for decision in weighed]
        assert sorted(map(self.host, servers)) == sorted(self.host_of[uuid] for uuid in self.relay.claimed)
        assert len(set(self.relay.claimed)) == 4  # the weigher spreads over all hosts without GPUs

    def test_moves_go_to_the_host_that_placement_ranks_first(self) -> None:
        flavor = self.flavor(2)
        for move in (self._cold_migrated, self._live_migrated, self._unshelved, self._evacuated):
            server = self._create_server(flavor_id=flavor, networks="none")
            before = len(self.relay.decisions)
            move(server)
            assert len(self.relay.decisions) == before + 1, move
            assert self.host(server) == self.best(), move

    def _cold_migrated(self, server: dict[str, str]) -> None:
        self._migrate_server(server)
        self._confirm_resize(server)

    def _live_migrated(self, server: dict[str, str]) -> None:
        self._live_migrate(server)

    def _evacuated(self, server: dict[str, str]) -> None:
        source = self.computes[self.host(server)]
        source.stop()
        self.api.put_service_force_down(source.service_ref.uuid, True)
        self._evacuate_server(server, expected_state="SHUTOFF", expected_migration_status="done")

    def _unshelved(self, server: dict[str, str]) -> None:
        self._shelve_server(server)
        self._unshelve_server(server)


class WithOthers(NovaOnPlacement):
    """Placement's weigher with nova's for server groups."""

    number_of_hosts = 6
    weight_classes = (
        *PLACEMENT_ALONE,
        f"{GROUPS}.ServerGroupSoftAffinityWeigher",
        f"{GROUPS}.ServerGroupSoftAntiAffinityWeigher",
    )

    def hosts_of_group(self, policy: str) -> Sequence[str]:
        """Boot four servers of a new group and return their hosts."""
        group = self.api.post_server_groups({"name": policy, "policy": policy})
        flavor = self.flavor(2)
        body = {"flavor_id": flavor, "networks": "none"}
        hint = {"os:scheduler_hints": {"group": group["id"]}}
        servers = [self.api.post_server({"server": self._build_server(**body), **hint}) for _number in range(4)]
        return [self.host(self._wait_for_state_change(server, "ACTIVE")) for server in servers]

    def test_soft_affinity_counts_besides_a_profile_that_spreads(self) -> None:
        assert len({self.boot(self.flavor(2)) for _number in range(4)}) > 1
        assert len(set(self.hosts_of_group("soft-affinity"))) == 1

    def test_soft_anti_affinity_counts_besides_a_profile_that_packs(self) -> None:
        self.flags(group="filter_scheduler", placement_weight_profile="packed")
        assert len({self.boot(self.flavor(2)) for _number in range(4)}) == 1
        assert len(set(self.hosts_of_group("soft-anti-affinity"))) == 4
        assert len(set(self.hosts_of_group("anti-affinity"))) == 4

    def test_an_aggregate_may_weigh_its_hosts_more(self) -> None:
        favourite = next(name for name in self.host_of.values() if name.startswith("GpuHost"))
        aggregate = self._create_aggregate("favourites")
        self.api.post_aggregate_action(aggregate, {"add_host": {"host": favourite}})
        metadata = {"metadata": {"placement_weight_multiplier": "10"}}
        self.api.post_aggregate_action(aggregate, {"set_metadata": metadata})
        assert self.boot(self.flavor(2)) == favourite
