"""Whatever fails in Placement's planner, nova boots all the same, with one warning a minute."""

import contextlib
import json
import threading

from tests.nova.cloud import NOVA_ALONE, PLACEMENT_ALONE, NovaOnPlacement, our_server, reference_server
from tests.nova.relay import Fault


def answering(status: int, document: object) -> Fault:
    """Return a fault that answers JSON."""
    return lambda: (status, json.dumps(document).encode())


FAULTS = {
    "404": answering(404, {"errors": [{"status": 404, "detail": "an old server has no planner"}]}),
    "500": answering(500, {"errors": [{"status": 500, "detail": "an error"}]}),
    "expected 4 scores": answering(200, {"scores": [{"total": 1.0}]}),
    "with a total": answering(200, {"scores": [{"total": None}] * 4}),
    "not in JSON": lambda: (200, b"<html>a proxy's page</html>"),
}


class Failures(NovaOnPlacement):
    """Faults of the planner, one after the other; the rest of the server works."""

    number_of_hosts = 4

    def a_minute_passes(self) -> None:
        for weigher in self.scheduler.manager.host_manager.weighers:
            weigher._quiet_until = 0.0

    def test_each_fault_boots_with_one_warning_a_minute(self) -> None:
        flavor = self.flavor(1)
        for number, (symptom, fault) in enumerate(FAULTS.items(), start=1):
            self.a_minute_passes()
            self.relay.fault = fault
            self.boot(flavor)
            self.boot(flavor)
            assert len(self.warnings()) == number, self.warnings()
            assert symptom in self.warnings()[-1]
        self.relay.fault = None
        assert self.boot(flavor) == self.best()

    def test_a_planner_that_does_not_answer_is_not_waited_for(self) -> None:
        answered = threading.Event()
        self.addCleanup(answered.set)
        self.flags(group="filter_scheduler", placement_weight_timeout=0.2)
        self.relay.fault = lambda: (500, str(answered.wait(60)).encode())
        self.boot(self.flavor(1))
        self.boot(self.flavor(1))
        assert len(self.warnings()) == 1
        assert "timed out" in self.warnings()[0]


class Forbidden(NovaOnPlacement):
    """A server whose policy lets nobody ask for scores."""

    number_of_hosts = 3

    def placement_server(self) -> contextlib.AbstractContextManager[str]:
        return our_server(policy='"placement:planner:scores": "!"\n')

    def test_a_refusal_boots_with_a_warning(self) -> None:
        self.boot(self.flavor(1))
        assert len(self.warnings()) == 1
        assert "answered 403" in self.warnings()[0]


class OnTheReference(NovaOnPlacement):
    """Nova's own weighers and this one, on openstack-placement."""

    weight_classes = (*NOVA_ALONE, *PLACEMENT_ALONE)

    def placement_server(self) -> contextlib.AbstractContextManager[str]:
        return reference_server()

    def test_nova_boots_as_it_does_alone(self) -> None:
        flavors = [self.flavor(2), self.flavor(6), self.flavor(2, resources_PGPU="1")] * 3
        with_the_weigher = self._hosts(flavors)
        assert len(self.warnings()) == 1
        assert "answered 404" in self.warnings()[0]
        del self.scheduler.manager.host_manager.weighers[-1]
        assert self._hosts(flavors) == with_the_weigher

    def _hosts(self, flavors: list[str]) -> list[str]:
        """Boot and return the hosts; nothing is left behind."""
        servers = [self._create_server(flavor_id=flavor, networks="none") for flavor in flavors]
        hosts = [self.host(server) for server in servers]
        for server in servers:
            self._delete_server(server)
        return hosts
