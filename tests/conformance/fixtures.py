"""The fixture classes that the suite's files name, creating their data by requests.

The reference's classes of the same names write to its database. Tests check generations, so each provider gets the same
number of writes: one for each inventory, one for its traits, one for each claim.
"""

import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import yaml
from gabbi import fixture

from tests.clouds import Cloud, Provider, allocate, build, provider, trees
from tests.http_calls import Call, ask

_TABLE = yaml.safe_load(Path(__file__).with_name("fixture_clouds.yaml").read_text(encoding="utf-8"))
CLOUDS = {name: trees(written) for name, written in _TABLE.items()}

RANDOM_NAMES = (
    *("RP_UUID", "RP_NAME", "RP_UUID1", "RP_NAME1", "RP_UUID2", "RP_NAME2", "PROJECT_ID", "ADMIN_PROJECT_ID"),
    *("SERVICE_PROJECT_ID", "USER_ID", "PROJECT_ID_ALT", "USER_ID_ALT", "INSTANCE_UUID", "MIGRATION_UUID"),
    *("CONSUMER_UUID", "PARENT_PROVIDER_UUID", "ALT_PARENT_PROVIDER_UUID"),
)


class APIFixture(fixture.GabbiFixture):
    """An empty service, and the names most files refer to."""

    call: ClassVar[Call]  # set for each file, because gabbi creates the instances itself

    def start_fixture(self) -> None:
        found = ask(self.call, "GET", "/resource_providers", "1.0") if self._may_list() else {}
        assert not found.get("resource_providers"), "each file needs an empty database"
        for name in RANDOM_NAMES:
            os.environ[name] = str(uuid.uuid4())
        os.environ["CUSTOM_RES_CLASS"] = "CUSTOM_IRON_NFV"
        os.environ["CUSTOM_RES_CLASS1"] = "CUSTOM_IRON_NFV1"
        os.environ["CUSTOM_RES_CLASS2"] = "CUSTOM_IRON_NFV2"
        self.make_data()

    def make_data(self) -> None:
        """Build what the file starts from; nothing here."""

    def _may_list(self) -> bool:
        """Return whether the configuration lets the seeding user list providers at all."""
        return self.call("GET", "/resource_providers", "1.0", None)[0] != 403


class CORSFixture(APIFixture):
    """No data: only the configuration matters, here and in the next three."""


class OpenPolicyFixture(APIFixture):
    """Every policy rule overridden to allow everybody."""


class SecureRBACPolicyFixture(APIFixture):
    """Only the new policy defaults."""


class LegacyRBACPolicyFixture(APIFixture):
    """The default policy."""


class AllocationFixture(APIFixture):
    """One provider with two consumers of one user and one of another."""

    def make_data(self) -> None:
        for name in ("ALT_USER_ID", "ALT_RP_UUID", "ALT_RP_NAME"):
            os.environ[name] = str(uuid.uuid4())
        name, identity = os.environ["RP_NAME"], os.environ["RP_UUID"]
        disk = {"total": 2048, "step_size": 10, "min_unit": 10, "max_unit": 1000}
        ask(self.call, "POST", "/resource_providers", "1.0", {"name": name, "uuid": identity})
        for record in ({"resource_class": "DISK_GB", **disk}, {"resource_class": "VCPU", "total": 10, "max_unit": 10}):
            ask(self.call, "POST", f"/resource_providers/{identity}/inventories", "1.0", record)
        project, user = os.environ["PROJECT_ID"], os.environ["USER_ID"]
        other = os.environ["ALT_USER_ID"]
        os.environ["CONSUMER_0"] = allocate(self.call, identity, {"DISK_GB": 1000}, project=project, user=user)
        os.environ["CONSUMER_ID"] = allocate(self.call, identity, {"VCPU": 6}, project=project, user=user)
        claim = {"DISK_GB": 20, "VCPU": 1}
        os.environ["ALT_CONSUMER_ID"] = allocate(self.call, identity, claim, project=project, user=other)


class CloudFixture(APIFixture):
    """A cloud whose uuids are passed to the file in environment variables."""

    roots: ClassVar[Sequence[Provider]]
    aggregates: ClassVar[Mapping[str, str]] = {}  # label -> variable
    variable = "{}_UUID"  # of a provider, from its name

    def make_data(self) -> None:
        self.publish(build(self.call, *self.roots))

    def publish(self, cloud: Cloud) -> None:
        """Put the uuids into the environment."""
        for label, name in self.aggregates.items():
            os.environ[name] = cloud.aggregates.get(label) or str(uuid.uuid4())
        for name, identity in cloud.providers.items():
            os.environ[self.variable.format(name.upper())] = identity


class SharedStorageFixture(CloudFixture):
    """Two compute trees (NUMA nodes, PFs) and two sharing providers."""

    roots = CLOUDS["shared_storage"]
    aggregates: ClassVar[Mapping[str, str]] = {"A": "AGG_UUID"}


class NUMAAggregateFixture(CloudFixture):
    """NUMA trees whose parts belong to different aggregates."""

    roots = CLOUDS["numa_aggregates"]
    aggregates: ClassVar[Mapping[str, str]] = {"A": "AGGA_UUID", "B": "AGGB_UUID", "C": "AGGC_UUID"}


class NUMANetworkFixture(CloudFixture):
    """A NUMA host with devices and agents, and a host with NICs and PFs."""

    roots = (*CLOUDS["network_storage"], *CLOUDS["numa_host"], *CLOUDS["nic_host"])
    aggregates: ClassVar[Mapping[str, str]] = {"A": "AGGA_UUID"}

    def publish(self, cloud: Cloud) -> None:
        super().publish(cloud)
        consumer = {"user": "numafx-user", "project": "numafx-project"}
        allocate(self.call, cloud.providers["numa0"], {"VCPU": 2}, **consumer)
        allocate(self.call, cloud.providers["cn2"], {"VCPU": 3}, **consumer)


class DeepNUMANetworkFixture(NUMANetworkFixture):
    """The same two hosts, two levels deeper in one larger tree."""

    roots = (
        provider("gp1", provider("p1", *CLOUDS["numa_host"]), provider("p2", *CLOUDS["nic_host"])),
        *CLOUDS["network_storage"],
    )


class NonSharedStorageFixture(CloudFixture):
    """Three hosts with local disks only."""

    roots = CLOUDS["local_disks"]
    aggregates: ClassVar[Mapping[str, str]] = {"A": "AGGA_UUID", "B": "AGGB_UUID", "C": "AGGC_UUID"}


class GranularFixture(CloudFixture):
    """Three hosts and three sharing providers in overlapping aggregates."""

    roots = CLOUDS["granular"]
    aggregates: ClassVar[Mapping[str, str]] = {"A": "AGGA", "B": "AGGB", "C": "AGGC"}
    variable = "{}"


class NeutronQoSMultiSegmentFixture(CloudFixture):
    """Four compute trees with network agents and bandwidth inventories."""

    roots = CLOUDS["network_segments"]

    def publish(self, cloud: Cloud) -> None:
        os.environ.update(cloud.providers)
        # The reference's fixture publishes compute2's agent twice; the file's expectations are made for that.
        os.environ["compute3:sriov_agent"] = os.environ["compute2:sriov_agent"]  # noqa: SIM112
