"""Starts a placement server as an operator does: a configuration directory, `placement-manage db sync`, gunicorn.

The same steps serve this project and the reference, because one is a drop-in replacement for the other.
"""

import contextlib
import http.client
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 15

APPLICATION = "placement.wsgi.api:application"

Sections = Mapping[str, Mapping[str, str]]


class ServerDidNotStart(Exception):
    """The server exited, or never answered."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with a placement server and gunicorn in it."""

    python: Path
    variables: Mapping[str, str]

    def command(self, name: str) -> str:
        """Return the path of a command installed by the environment's packages."""
        return str(self.python.with_name(name))


def plain_environment(*without: str) -> dict[str, str]:
    """Return this process's variables without those that would configure a server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OS_") and name not in without}


def this_project() -> Installation:
    """Return the environment the tests run in, where this project is installed."""
    return Installation(Path(sys.executable), plain_environment())


def default_sections(database_url: str) -> dict[str, dict[str, str]]:
    """Return a configuration with test authentication (the token names the user) on one database."""
    return {
        "DEFAULT": {"log_options": "False"},
        "api": {"auth_strategy": "noauth2"},
        "placement_database": {"connection": database_url.replace("%", "%%")},
    }


def migrating(sections: Sections) -> Sections:
    """Return a configuration with which the server creates its tables itself, which saves a run of placement-manage."""
    return {**sections, "placement_database": {**sections["placement_database"], "sync_on_startup": "True"}}


def write_configuration(directory: Path, sections: Sections) -> Path:
    """Write placement.conf into a directory and return its path."""
    lines = []
    for section, options in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in options.items())]
    path = directory / "placement.conf"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def placement_manage(installation: Installation, directory: Path, *arguments: str) -> str:
    """Run placement-manage with the directory's configuration and return what it printed."""
    command = [installation.command("placement-manage"), "--config-file", str(directory / "placement.conf"), *arguments]
    done = subprocess.run(
        command, cwd=directory, env=dict(installation.variables), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ServerDidNotStart(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclass(slots=True)
class Served:
    """A running server, with its workers in a separate process group."""

    url: str
    process: "subprocess.Popen[bytes]"

    @property
    def pids(self) -> list[int]:
        """Its process, and those of its workers."""
        pid = self.process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    @property
    def workers(self) -> set[int]:
        """The processes of its workers."""
        return {*self.pids[1:]}

    def kill(self) -> None:
        """Kill it and its workers in the middle of their work."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_TIMEOUT_S)

    def stop(self) -> None:
        """Stop it and its workers, which share a process group, as an operator does."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_TIMEOUT_S)
                return


def started_server(
    installation: Installation,
    directory: Path,
    *,
    port: int | None = None,
    workers: int = 1,
    threads: int = 4,
    application: str = APPLICATION,
    options: Sequence[str] = (),
) -> Served:
    """Serve the directory's configuration with gunicorn; the caller stops it."""
    port = port or free_port()
    command = [str(installation.python), "-m", "gunicorn", application]
    command += ["--bind", f"127.0.0.1:{port}", "--workers", str(workers), "--threads", str(threads)]
    command += ["--worker-class", "gthread", "--keep-alive", "30", "--timeout", "120", "--graceful-timeout", "2"]
    command += ["--limit-request-line", "0", "--log-level", "warning", *options]
    return started(command, directory, port, variables=installation.variables)


def started(
    command: Sequence[str], directory: Path, port: int, *, path: str = "/", variables: Mapping[str, str] | None = None
) -> Served:
    """Start a program that serves the directory's configuration at a port and a path; the caller stops it."""
    process = launched(command, directory, variables=variables)
    served = Served(f"http://127.0.0.1:{port}", process)
    try:
        until(lambda: process.poll() is not None or _answers(port, path))
        if process.poll() is not None:
            raise ServerDidNotStart(f"the server ended with {process.returncode}")
    except BaseException as error:
        served.stop()
        error.add_note((directory / "server.log").read_text(encoding="utf-8", errors="replace")[-2000:])
        raise
    return served


def launched(
    command: Sequence[str], directory: Path, *, variables: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start a program with the directory's configuration without waiting for it; its output is in server.log."""
    variables = plain_environment() if variables is None else variables
    # The working directory is not the checkout: a server must find its own `placement`, not this one.
    with (directory / "server.log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=directory,
            env={**variables, "OS_PLACEMENT_CONFIG_DIR": str(directory)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@contextlib.contextmanager
def running(command: Sequence[str], directory: Path, port: int, **options: Any) -> Iterator[Served]:
    """Start a program (options as for ``started``), and stop it."""
    served = started(command, directory, port, **options)
    try:
        yield served
    finally:
        served.stop()


@contextlib.contextmanager
def running_server(installation: Installation, directory: Path, **options: Any) -> Iterator[str]:
    """Serve the directory's configuration (options as for ``started_server``), yield the base URL, stop it."""
    served = started_server(installation, directory, **options)
    try:
        yield served.url
    finally:
        served.stop()


@contextlib.contextmanager
def serving(
    directory: Path, sections: Sections, installation: Installation | None = None, **options: Any
) -> Iterator[str]:
    """Serve a configuration from a directory; the server creates its tables. Options as for ``started_server``."""
    write_configuration(directory, migrating(sections))
    with running_server(installation or this_project(), directory, **options) as url:
        yield url


@contextlib.contextmanager
def running_servers(
    directories: Iterable[Path], *, variables: Iterable[Mapping[str, str]] = itertools.repeat({}), threads: int = 4
) -> Iterator[list[Served]]:
    """Serve the configuration of each directory by this project, with variables of its own; kill all afterwards."""
    project = this_project()
    with contextlib.ExitStack() as running:
        served = []
        for directory, own in zip(directories, variables, strict=False):
            installation = Installation(project.python, {**project.variables, **own})
            served.append(started_server(installation, directory, threads=threads))
            running.callback(served[-1].kill)
        yield served


def configured(directory: Path, url: str, **database: str) -> Path:
    """Write a configuration for a database, migrate the database, and return the configuration's directory."""
    directory.mkdir(exist_ok=True)
    sections = default_sections(url)
    sections["placement_database"] |= database
    write_configuration(directory, sections)
    placement_manage(this_project(), directory, "db", "sync")
    return directory


def check_database(directory: Path) -> None:
    """Check that ``placement db check`` finds nothing wrong."""
    installation = this_project()
    command = [installation.command("placement"), "db", "--config-file", str(directory / "placement.conf"), "check"]
    done = subprocess.run(command, env=dict(installation.variables), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Nothing is wrong.\n"), done.stdout + done.stderr


@contextlib.contextmanager
def served_as_shipped(directory: Path, *, threads: int, before: Sequence[str] = ()) -> Iterator[Served]:
    """Serve with one worker and the settings for gunicorn that this project ships.

    Args:
        directory: the configuration's directory.
        threads: how many threads serve requests.
        before: a command that runs gunicorn, whose command line follows.
    """
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:placement.wsgi.gunicorn", "--workers", "1"]
    command += ["--bind", f"127.0.0.1:{port}", "--threads", str(threads), "--graceful-timeout", "2"]
    running = started([*before, *command], directory, port, variables=plain_environment())
    try:
        yield running
    finally:
        running.kill()


@contextlib.contextmanager
def standing_still(pids: Iterable[int]) -> Iterator[None]:
    """Stop processes in the middle of their work: they answer nobody, and later resume in their old state."""
    stopped = [*pids]

    def tell(number: signal.Signals) -> None:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    tell(signal.SIGSTOP)
    try:
        yield
    finally:
        tell(signal.SIGCONT)


def until(holds: Callable[[], object], *, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait until a condition holds for a server."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise ServerDidNotStart(f"it takes longer than {timeout_s} s")
        time.sleep(0.05)


def free_port() -> int:
    """Return a free TCP port on the loopback address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for_answer(port: int) -> None:
    """Wait until a server started elsewhere answers at a port."""
    until(lambda: _answers(port, "/"))


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()
