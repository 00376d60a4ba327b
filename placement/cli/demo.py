"""``placement demo``: a server on a temporary database, and a tour of what it does."""

import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import click

from placement.app import create_app
from placement.cli.demo_story import show_what_to_try, tell
from placement.cli.http_server import Processes, listen, serve, url_of
from placement.errors import ConfigurationError, PlacementError
from placement.settings import DatabaseSettings, Settings
from placement.tuning import tune_process

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
    _exit_on(signal.SIGTERM, signal.SIGHUP)
    with tempfile.TemporaryDirectory(prefix="placement-demo-") as directory, _listener(port) as listener:
        application = create_app(_settings(Path(directory)))
        application.extensions["placement"].database.dispose()
        tune_process()
        story = Story(url_of(listener), once=once)
        serve(application, [listener], Processes(workers=1, threads=4), when_ready=story.begin)
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


def _exit_on(*signals: signal.Signals) -> None:
    """Run the clean-up even if the process is stopped before the server has installed its signal handlers."""
    for number in signals:
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))


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
