"""``placement demo``: a server on a temporary database, and a tour of what it does.

The tour loads a cloud, asks for candidates, claims one and looks again. Three hosts and a disk shelf: one host with two
NUMA nodes, a GPU on each, and local disk; one without a disk of its own; one plain and standalone. The shelf's disk is
shared with all hosts in its aggregate.
"""

import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from placement.app import create_app
from placement.cli.http_client import MICROVERSION, Client
from placement.cli.output import Document, PrintedTable, available_width
from placement.cli.serve import Processes, listen, run_server, url_of
from placement.errors import ConfigurationError, PlacementError
from placement.settings import DatabaseSettings, Settings
from placement.tuning import tune_process

NAMESPACE = uuid.UUID("6b1b4a0e-9c5e-4f0e-8c39-5a7d1c0de310")
"""The namespace for uuids derived from names, so that every run of the demo has the same providers."""

DEVICE_LOCK = "CUSTOM_DEVICE_LOCK"
"""The class that locks a device for requests that want it exclusively, as in the sample planner file."""


def uuid_of(name: str) -> str:
    """Return the uuid that a name has in every run of the demo."""
    return str(uuid.uuid5(NAMESPACE, name))


@dataclass(frozen=True, slots=True)
class DemoProvider:
    """A provider; devices have DEVICE_LOCK in addition to their inventory."""

    name: str
    parent: str | None = None
    inventory: Mapping[str, int] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregate: str | None = None
    is_device: bool = False

    @property
    def uuid(self) -> str:
        """The uuid derived from the name."""
        return uuid_of(self.name)


def _numa_node(name: str, host: str) -> DemoProvider:
    return DemoProvider(name, host, {"VCPU": 16, "MEMORY_MB": 65536}, ("HW_NUMA_ROOT",))


def _device(name: str, parent: str, *traits: str, **inventory: int) -> DemoProvider:
    return DemoProvider(name, parent, inventory, traits, is_device=True)


CLOUD = (
    DemoProvider("compute1", None, {"DISK_GB": 500}, ("STORAGE_DISK_SSD",), "rack1"),
    _numa_node("compute1-numa0", "compute1"),
    _device("compute1-gpu0", "compute1-numa0", "CUSTOM_A100", PGPU=1),
    _numa_node("compute1-numa1", "compute1"),
    _device("compute1-gpu1", "compute1-numa1", "CUSTOM_A100", PGPU=1),
    _device("compute1-fpga0", "compute1-numa1", FPGA=1),
    _device("compute1-nic0", "compute1", "HW_NIC_ACCEL_SSL", SRIOV_NET_VF=8),
    _device("compute1-nic1", "compute1", SRIOV_NET_VF=8),
    DemoProvider("compute2", aggregate="rack1"),
    _numa_node("compute2-numa0", "compute2"),
    _device("compute2-fpga0", "compute2-numa0", FPGA=1),
    _numa_node("compute2-numa1", "compute2"),
    _device("compute2-gpu0", "compute2-numa1", "CUSTOM_A100", PGPU=1),
    _device("compute2-nic0", "compute2", "HW_NIC_ACCEL_SSL", SRIOV_NET_VF=8),
    DemoProvider("compute3", None, {"VCPU": 8, "MEMORY_MB": 32768}),
    DemoProvider("storage1", None, {"DISK_GB": 10000}, ("MISC_SHARES_VIA_AGGREGATE",), "rack1"),
)
"""Parents before their children."""

GROUPS = {
    "_COMPUTE": "a NUMA node with 4 VCPU and 8 GiB",
    "_GPU": "a GPU below that same node",
    "_NET": "2 VFs of a NIC that accelerates SSL",
    "_DISK": "100 GB of disk, local or shared",
}
"""What each request group, keyed by suffix, asks for."""

REQUEST = (
    ("resources_COMPUTE", "VCPU:4,MEMORY_MB:8192"),
    ("required_COMPUTE", "HW_NUMA_ROOT"),
    ("resources_GPU", "PGPU:1"),
    ("same_subtree", "_COMPUTE,_GPU"),
    ("resources_NET", "SRIOV_NET_VF:2"),
    ("required_NET", "HW_NIC_ACCEL_SSL"),
    ("resources_DISK", "DISK_GB:100"),
    ("group_policy", "none"),
)
"""The query string of GET /allocation_candidates."""


CONSUMER = uuid_of("a demo instance")
CANDIDATES_PATH = "/allocation_candidates?" + urlencode(REQUEST, safe=":,")

Say = Callable[[str], None]
NAMES = {provider.uuid: provider.name for provider in CLOUD}


def tell(url: str, say: Say) -> None:
    """Run the whole tour on an empty server."""
    call = Client(url)
    _load(call)
    _show_cloud(call.requests, say)
    say("THE REQUEST: GET /allocation_candidates with four request groups\n")
    parameters = [(f"{name}={value}", GROUPS.get(name.removeprefix("resources"), "")) for name, value in REQUEST]
    _say_table(("query", "which asks for"), parameters, say)
    document, count = _ask(call)
    say(f"THE ANSWER: {count}\n")
    candidates = document["allocation_requests"]
    rows = [
        (number, *(", ".join(NAMES[chosen] for chosen in candidate["mappings"][suffix]) for suffix in GROUPS))
        for number, candidate in enumerate(candidates, start=1)
    ]
    _say_table(("", *GROUPS), rows, say)
    _claim(call, candidates[0], document["provider_summaries"], say=say)
    _, count_after = _ask(call)
    say(f"The same request again: {count_after}, because a GPU is taken.\n")


def show_what_to_try(url: str, say: Say) -> None:
    """Print the server's URL, with commands to paste into a shell."""
    say(f"The server is at {url} until you press Ctrl-C, its console at {url}/ui. Three lines to try:\n")
    for path in (f"/resource_providers?in_tree={uuid_of('compute1')}", CANDIDATES_PATH, f"/allocations/{CONSUMER}"):
        headers = f"-H 'X-Auth-Token: admin' -H 'OpenStack-API-Version: placement {MICROVERSION}'"
        say(f"curl -s {headers} '{url}{path}' | python3 -m json.tool")
    say("")


def _load(call: Client) -> None:
    for trait in sorted({trait for provider in CLOUD for trait in provider.traits if trait.startswith("CUSTOM_")}):
        call("PUT", f"/traits/{trait}")
    call("PUT", f"/resource_classes/{DEVICE_LOCK}")
    with click.progressbar(CLOUD, label="Loading the demo cloud", hidden=available_width() is None) as shown:
        for provider in shown:
            _make(call, provider)


def _make(call: Client, provider: DemoProvider) -> None:
    parent = {} if provider.parent is None else {"parent_provider_uuid": uuid_of(provider.parent)}
    call("POST", "/resource_providers", {"name": provider.name, "uuid": provider.uuid, **parent})
    lock = {DEVICE_LOCK: 1000} if provider.is_device else {}
    parts: dict[str, object] = {
        "inventories": {name: {"total": total} for name, total in {**provider.inventory, **lock}.items()},
        "traits": list(provider.traits),
        "aggregates": [uuid_of(provider.aggregate)] if provider.aggregate else [],
    }
    for generation, (part, content) in enumerate([(part, content) for part, content in parts.items() if content]):
        body = {"resource_provider_generation": generation, part: content}
        call("PUT", f"/resource_providers/{provider.uuid}/{part}", body)


def _ask(call: Client) -> tuple[Document, str]:
    """Return the answer to the request, and a count of its candidates with how long it took."""
    begin = time.perf_counter()
    document = call("GET", CANDIDATES_PATH)
    taken_ms = (time.perf_counter() - begin) * 1000
    return document, f"{len(document['allocation_requests'])} candidates in {taken_ms:.0f} ms"


def _show_cloud(requests: int, say: Say) -> None:
    rows, depths = [], dict[str | None, int]()
    for provider in CLOUD:
        depth = depths[provider.name] = depths.get(provider.parent, -1) + 1
        branch = "  " * (depth - 1) + ("+- " if depth else "")
        inventory = ", ".join(f"{name} {total}" for name, total in provider.inventory.items())
        remarks = [", ".join(provider.traits), f"({provider.aggregate})" if provider.aggregate else ""]
        rows.append((branch + provider.name, inventory, " ".join(remarks).strip()))
    say(f"THE CLOUD: {len(rows)} resource providers, made with {requests} requests\n")
    _say_table(("provider", "inventory", "traits (aggregate)"), rows, say)


def _claim(call: Client, candidate: Document, summaries: Document, *, say: Say) -> None:
    body = {"project_id": "demo", "user_id": "demo", "consumer_generation": None, "consumer_type": "INSTANCE"}
    call("PUT", f"/allocations/{CONSUMER}", {**candidate, **body})
    say(f"THE CLAIM: PUT /allocations/{CONSUMER} with the first\n")
    rows = []
    for provider_uuid, allocation in candidate["allocations"].items():
        usages = call("GET", f"/resource_providers/{provider_uuid}/usages")["usages"]
        for name, amount in allocation["resources"].items():
            capacity = summaries[provider_uuid]["resources"][name]["capacity"]
            rows.append((NAMES[provider_uuid], name, f"{amount}", f"{usages[name]} of {capacity}"))
    _say_table(("provider", "resource class", "claimed", "used"), rows, say)


def _say_table(header: Sequence[str], rows: Sequence[Sequence[object]], say: Say) -> None:
    for line in PrintedTable(header, rows).lines(available_width(), all_columns=True):
        say(line)
    say("")


HOST = "127.0.0.1"
USUAL_PORT = 8778


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on.  [default: 8778, or a free one]")
@click.option("--once", is_flag=True, help="Stop after the demonstration instead of serving.")
def demo(*, port: int | None, once: bool) -> None:
    """Demonstrate the server on a small cloud.

    Starts a server on a temporary database, loads a cloud of NUMA nodes, GPUs, NICs and shared storage, asks it for
    allocation candidates, claims the first, and keeps serving until Ctrl-C. Needs no configuration and leaves no
    trace.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        # The clean-up runs even before the server has installed its signal handlers.
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))
    with tempfile.TemporaryDirectory(prefix="placement-demo-") as directory, _listener(port) as listener:
        application = create_app(_settings(Path(directory)))
        application.extensions["placement"].database.dispose()
        tune_process()
        story = Story(url_of(listener), once=once)
        run_server(application, [listener], Processes(workers=1, threads=4), when_ready=story.begin)
    if story.failed:
        sys.exit(1)


class Story:
    """The tour, run in a thread next to the server's own loop."""

    def __init__(self, url: str, *, once: bool) -> None:
        self._url = url
        self._once = once
        self.failed = False

    def begin(self, arbiter: Any) -> None:
        """Start the tour; the server is about to accept requests."""
        # Closing the terminal ends the demo. (gunicorn would reload its configuration.)
        signal.signal(signal.SIGHUP, lambda _number, _frame: _stop())
        threading.Thread(target=self._tell, args=(arbiter,), daemon=True).start()

    def _tell(self, arbiter: Any) -> None:
        try:
            tell(self._url, click.echo)
            if not self._once:
                show_what_to_try(self._url, click.echo)
                return
        except Exception as error:
            # While the server is stopping, failing requests are expected.
            self.failed = bool(arbiter.LISTENERS)
            if self.failed:
                click.echo(f"Error: {error if isinstance(error, PlacementError) else repr(error)}", err=True)
        _stop()


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _listener(port: int | None) -> socket.socket:
    if port is not None:
        return listen(HOST, port)
    with contextlib.suppress(ConfigurationError):
        return listen(HOST, USUAL_PORT)
    return listen(HOST, 0)


def _settings(directory: Path) -> Settings:
    database = DatabaseSettings(
        connection=f"sqlite:///{directory / 'placement.sqlite'}", sqlite_synchronous=False, sync_on_startup=True
    )
    return Settings(database=database, auth_strategy="noauth2", auth_is_implicit=True)
