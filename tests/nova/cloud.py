"""Nova's functional fixtures on a placement server that runs as a process: API, conductor, scheduler, fake computes."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fixtures
from keystoneauth1 import adapter, loading, session
from nova import test
from nova.scheduler import utils as scheduler_utils
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import fixtures as func_fixtures
from nova.tests.functional import integrated_helpers

from tests import reference, servers
from tests.nova import hosts
from tests.nova.relay import Relay, running_relay

PLANNER_YAML = """
levels: {numa: HW_NUMA_ROOT}
default_profile: ai
profiles:
  ai:
    fit:
      weight: 10
      resources:
        PGPU: {type: MostAllocated, weight: 2}
        VCPU: {type: LeastAllocated, weight: 1}
    sra: {weight: 10, resources: {PGPU: 1}}
    compactness: {weight: 5}
  packed:
    fit: {weight: 10, resources: {VCPU: {type: MostAllocated, weight: 1}}}
"""

NOVA_ALONE = ("nova.scheduler.weights.all_weighers",)
PLACEMENT_ALONE = ("placement_weigher.PlacementWeigher",)

ADMIN_TOKEN = "admin_token"


@contextlib.contextmanager
def our_server(database_url: str = "", *, policy: str = "") -> Iterator[str]:
    """Start this project's server; yield its URL."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "planner.yaml").write_text(PLANNER_YAML)
        (directory / "policy.yaml").write_text(policy)
        sections = servers.default_sections(database_url or f"sqlite:///{name}/placement.sqlite")
        sections["oslo_policy"] = {"policy_file": str(directory / "policy.yaml")}
        with servers.serving(directory, sections) as url:
            yield url


@contextlib.contextmanager
def reference_server() -> Iterator[str]:
    """Start openstack-placement; yield its URL."""
    with tempfile.TemporaryDirectory() as name:
        sections = reference.configuration(f"sqlite:///{name}/placement.sqlite")
        with servers.serving(Path(name), sections, reference.installation()) as url:
            yield url


class RunningPlacement(func_fixtures.PlacementFixture):  # type: ignore[misc]
    """A relay to a running server, at the place of nova's fixture; nova's client is the real one."""

    def __init__(self, server: contextlib.AbstractContextManager[str], test: Any) -> None:
        super().__init__()
        self._server = server
        self._test = test
        self.relay: Relay

    def setUp(self) -> None:
        fixtures.Fixture.setUp(self)
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.relay, self.endpoint = stack.enter_context(running_relay(stack.enter_context(self._server)))
        self._client = adapter.Adapter(session.Session(auth=None), raise_exc=False)
        self.api = func_fixtures.PlacementApiClient(self)
        options = loading.get_auth_plugin_conf_options(ADMIN_TOKEN)
        scheduler_utils.CONF.register_opts(options, group="placement")
        self._test.flags(
            group="placement",
            auth_type=ADMIN_TOKEN,
            token="admin",
            endpoint=self.endpoint,
            endpoint_override=self.endpoint,
        )


class NovaOnPlacement(test.TestCase, integrated_helpers.PlacementInstanceHelperMixin):  # type: ignore[misc]
    """Nova with hosts of three kinds; subclasses choose the server and the weighers.

    Attributes:
        relay: what nova asked of Placement.
        host_of: the name of each host by the uuid of its root provider.
    """

    weight_classes: tuple[str, ...] = PLACEMENT_ALONE
    number_of_hosts = 12

    def placement_server(self) -> contextlib.AbstractContextManager[str]:
        """Return the placement server to start."""
        return our_server()

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(nova_fixtures.RealPolicyFixture())
        self.useFixture(nova_fixtures.NeutronFixture(self))
        self.useFixture(nova_fixtures.CinderFixture(self))
        self.useFixture(nova_fixtures.AllServicesCurrent())
        self.useFixture(nova_fixtures.CastAsCallFixture(self))
        self.useFixture(fixtures.MonkeyPatch("nova.virt.driver.load_compute_driver", hosts.driver_of_this_host))
        self.glance = self.useFixture(nova_fixtures.GlanceFixture(self))
        self.notifier = self.useFixture(nova_fixtures.NotificationFixture(self))
        running = self.useFixture(RunningPlacement(self.placement_server(), self))
        self.relay, self.placement = running.relay, running.api
        self._configure()
        self.api_fixture = self.useFixture(nova_fixtures.OSAPIFixture(api_version="v2.1"))
        self.api = self.admin_api = self.api_fixture.admin_api
        self.api.microversion = "latest"
        self.start_service("conductor")
        self.scheduler = self.start_service("scheduler")
        self.host_of = dict(self._started_hosts())

    def _configure(self) -> None:
        # The wheel has the file elsewhere than the checkout that the fixture expects.
        self.flags(group="wsgi", api_paste_config=f"{sys.prefix}/etc/nova/api-paste.ini")
        self.flags(group="filter_scheduler", weight_classes=[*self.weight_classes])
        self.flags(group="quota", cores=-1, ram=-1, instances=-1)
        self.flags(initial_cpu_allocation_ratio=1.0, initial_ram_allocation_ratio=1.0, reserved_host_memory_mb=0)

    def _started_hosts(self) -> Iterator[tuple[str, str]]:
        for number in range(self.number_of_hosts):
            name = f"{hosts.KINDS[number % 3].__name__}{number}"
            self._start_compute(name)
            yield self._get_provider_uuid_by_host(name), name

    def _wait_for_server_parameter(
        self, server: dict[str, Any], expected_params: dict[str, Any], max_retries: int = 10, **options: Any
    ) -> dict[str, Any]:
        """Wait longer than nova's tests do: the machine may be busy."""
        waited: dict[str, Any] = super()._wait_for_server_parameter(server, expected_params, 240, **options)
        return waited

    def flavor(self, vcpu: int, **extra_specs: str) -> str:
        """Create a flavor with 2 GB of memory for each VCPU; extra specs have one underscore for the colon."""
        extra_spec = {name.replace("_", ":", 1): value for name, value in extra_specs.items()}
        flavor_id: str = self._create_flavor(vcpu=vcpu, memory_mb=2048 * vcpu, disk=10, extra_spec=extra_spec)
        return flavor_id

    def boot(self, flavor: str, **options: Any) -> str:
        """Boot a server and return its host."""
        return self.host(self._create_server(flavor_id=flavor, networks="none", **options))

    def host(self, server: dict[str, Any]) -> str:
        """Return the host that a server is on now."""
        name: str = self.api.get_server(server["id"])["OS-EXT-SRV-ATTR:host"]
        return name

    def best(self) -> str:
        """Return the host that Placement ranked first among those of nova's last weighing."""
        return self.host_of[self.relay.decisions[-1].best]

    def warnings(self) -> list[str]:
        """Return the weigher's warnings so far."""
        return [line for line in self.stdlog.logger.output.splitlines() if "WARNING [placement_weigher]" in line]
