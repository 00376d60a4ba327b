"""Counts the rooms that a request walks through: files and functions of placement/ entered, and calls upwards.

``python -m tests.bench.rooms`` prints a table; ``--upwards`` also lists the calls from a layer into one above it, and
``--files`` the files. The layers are those of the contract in pyproject.toml.

The server runs in this process, on SQLite, with sixty hosts; "devices" means those of the example script, with locks.
``first`` is the first request of its kind in a worker. Calls are counted by ``sys.setprofile``, in the thread that
serves; a generator counts again when it is resumed. Calls upwards grow with the number of trees.
"""

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from werkzeug.test import TestResponse

import placement
from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from tests.api.conftest import Api
from tests.bench.rows import write_cloud
from tests.claims import new_uuid
from tests.databases import migrate
from tests.planner_hosts import consumer, register

PACKAGE = Path(placement.__file__).parent
CONTRACT = "Layers: never upward"
HOSTS = 60
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

FLAVOR = "/allocation_candidates?resources=VCPU:1,MEMORY_MB:{}"
DEVICES = "&resources_G=PGPU:1&resources_N=SRIOV_NET_VF:1&group_policy=none"
PAIRS = {
    "groups": {
        "": {"resources": {"MEMORY_MB": 1024}},
        "_G": {"resources": {"PGPU": 1}, "count": 4},
        "_N": {"resources": {"SRIOV_NET_VF": 1}, "vf_selector": [], "count": "per-subtree"},
    },
    "affinity": [{"groups": ["_G", "_N"], "primary": "_G", "level": "pcie"}],
    "within": [{"groups": ["_G"], "level": "numa", "mode": "preferred"}],
    "exclusive": [{"groups": ["_N"], "level": "pcie"}],
}
FULL = "resources=MEMORY_MB:1&resources_G=PGPU:9"
PLANNER = "/planner/v1"

Request = tuple[str, str, Any]
"""A method, a path, a body."""

Send = Callable[[Request], TestResponse]


@dataclass(slots=True)
class Walk:
    """What one request entered."""

    functions: "Counter[CodeType]" = field(default_factory=Counter)
    upwards: "Counter[tuple[CodeType, CodeType]]" = field(default_factory=Counter)

    @property
    def files(self) -> set[str]:
        """The files, relative to the package."""
        return {str(Path(code.co_filename).relative_to(PACKAGE)) for code in self.functions}

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call, if it is one of a function of ours."""
        if event != "call" or not _is_ours(frame.f_code):
            return
        self.functions[frame.f_code] += 1
        caller = _caller(frame)
        if caller is not None and _layer(caller) > _layer(frame.f_code):
            self.upwards[caller, frame.f_code] += 1


@cache
def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(f"{PACKAGE}/") and code.co_name != "<module>"


def _caller(frame: FrameType) -> CodeType | None:
    """Return the nearest function of ours that led to a call."""
    above = frame.f_back
    while above is not None and not _is_ours(above.f_code):
        above = above.f_back
    return None if above is None else above.f_code


@cache
def _layers() -> dict[str, int]:
    """Return the number of each layer by its module, 0 being the highest."""
    contracts = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["name"] == CONTRACT]
    return {name.strip(): number for number, row in enumerate(layers) for name in row.split("|")}


@cache
def _layer(code: CodeType) -> int:
    """Return the number of a function's layer; what is in none of them counts as the highest."""
    parts = Path(code.co_filename).relative_to(PACKAGE.parent).with_suffix("").parts
    numbers = [_layers()[name] for end in range(2, len(parts) + 1) if (name := ".".join(parts[:end])) in _layers()]
    return numbers[-1] if numbers else 0


def walked(send: Send, request: Request) -> Walk:
    """Return what a request enters that succeeds."""
    walk = Walk()
    sys.setprofile(walk.note)
    try:
        answer = send(request)
        answer.get_data()
    finally:
        sys.setprofile(None)
    assert answer.status_code < 300, answer.text
    return walk


def walks(send: Send, *, locks: bool) -> Iterator[tuple[str, Walk]]:
    """Yield each kind of request with what it enters, in a worker that has served others of each kind."""
    cloud = ", devices" if locks else ""
    for amount, age in ((1024, "first"), (2048, "")):
        new: Request = ("GET", FLAVOR.format(amount) + (DEVICES if locks else ""), None)
        yield f"{age or 'new'} GET candidates{cloud}", walked(send, new)
        chosen = send(new).json["allocation_requests"][0]
        if not age:
            yield f"repeated GET candidates{cloud}", walked(send, new)
        owner = {name: value for name, value in consumer().items() if name != "uuid"}
        yield f"{age} PUT allocations{cloud}", walked(send, ("PUT", f"/allocations/{new_uuid()}", {**chosen, **owner}))
        if locks:
            yield f"{age} planner candidates", walked(send, ("POST", f"{PLANNER}/candidates", {**PAIRS, "limit": 2}))
            yield f"{age} planner claim", walked(send, ("POST", f"{PLANNER}/claims", {**PAIRS, "consumer": consumer()}))
            yield f"{age} explanation", walked(send, ("GET", f"{PLANNER}/explain?{FULL}", None))
            yield f"{age} headroom", walked(send, ("GET", f"{PLANNER}/headroom?resources=PGPU:{amount // 1024}", None))
            counted = {"requests": {"pairs": PAIRS}}
            yield f"{age} headroom, pairs", walked(send, ("POST", f"{PLANNER}/headroom", counted))


def _where(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_qualname}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only requests whose name contains this")
    parser.add_argument("--upwards", action="store_true", help="list the calls upwards")
    parser.add_argument("--files", action="store_true", help="list the files")
    options = parser.parse_args()
    print(f"{'request':32}{'files':>7}{'functions':>11}{'calls':>9}{'upwards':>9}{'by pairs':>10}")
    for locks in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            for name, walk in walks(_worker(f"sqlite:///{directory}/placement.sqlite", locks=locks), locks=locks):
                if options.only in name:
                    _print(name.strip(), walk, options)


def _worker(url: str, *, locks: bool) -> Send:
    """Return a way to send requests to a server with a new cloud."""
    migrate(url)
    app = create_app(Settings(database=DatabaseSettings(connection=url), auth_strategy="noauth2"))
    if locks:
        for number in range(HOSTS):
            register(Api(app), f"host{number}")
    else:
        with app.extensions["placement"].database.writer.begin() as connection:
            write_cloud(connection, f"numa-gpu-{HOSTS}")
    client, headers = app.test_client(), {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}

    def send(request: Request) -> TestResponse:
        method, path, body = request
        return client.open(path, method=method, headers=headers, **({} if body is None else {"json": body}))

    return send


def _print(name: str, walk: Walk, options: argparse.Namespace) -> None:
    functions = sum(code.co_name not in COMPREHENSIONS for code in walk.functions)
    calls, upwards = walk.functions.total(), walk.upwards.total()
    print(f"{name:32}{len(walk.files):7}{functions:11}{calls:9}{upwards:9}{len(walk.upwards):10}")
    if options.files:
        print("\n".join(f"    {file}" for file in sorted(walk.files)))
    if options.upwards:
        for (caller, called), count in walk.upwards.most_common():
            print(f"    {count:5} {_where(caller)} -> {_where(called)}")


if __name__ == "__main__":
    main()
