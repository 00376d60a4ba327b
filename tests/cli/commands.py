"""Run the command ``placement`` and talk to what it starts."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from threading import Thread

import pytest
from flask import Flask
from werkzeug.serving import make_server

from placement.cli.main import main
from placement.store.connection.database import Database
from tests.databases import migrate, open_database
from tests.servers import plain_environment

TIMEOUT_S = 60


class Command:
    """The command with a home directory of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        self.environment = plain_environment("XDG_DATA_HOME") | {"HOME": str(home), "TMPDIR": str(self.temporary)}

    def with_database(self, fill: Callable[[Database], object]) -> str:
        """Create the database that the command uses by default, have it filled, and return its URL."""
        directory = self.home / ".local/share/placement"
        directory.mkdir(parents=True)
        url = f"sqlite:///{directory / 'placement.sqlite'}"
        migrate(url)
        database = open_database(url)
        fill(database)
        database.dispose()
        return url

    def configured(self, url: str, planner: str = "", **options: str) -> tuple[str, str]:
        """Write placement.conf for a database, and a planner file; return the options that name them."""
        file = self.home / "placement.conf"
        lines = [
            f"[{name.partition('__')[0]}]\n{name.partition('__')[2]} = {value}\n" for name, value in options.items()
        ]
        file.write_text("".join([f"[placement_database]\nconnection = {url}\n", *lines]))
        if planner:
            (self.home / "planner.yaml").write_text(planner)
        return "--config-file", str(file)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end in this process: starting a new one takes a second."""
        out, err, status = io.StringIO(), io.StringIO(), 0
        with contextlib.chdir(self.home), self._environment(), redirect_stdout(out), redirect_stderr(err):
            try:
                main(arguments, prog_name="placement")
            except SystemExit as end:
                status = int(end.code or 0)
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def process(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end, as a shell does."""
        return subprocess.run(
            self._line(arguments),
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator["Running"]:
        """Run the command beside the test; whatever remains of it is killed at the end."""
        process = subprocess.Popen(
            self._line(arguments),
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield Running(process)
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

    @contextlib.contextmanager
    def _environment(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patched:
            for name in os.environ.keys() - self.environment.keys():
                patched.delenv(name)
            for name, value in self.environment.items():
                patched.setenv(name, value)
            patched.setattr(tempfile, "tempdir", str(self.temporary))
            yield

    def _line(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(Path(sys.executable).with_name("placement")), *arguments]


def cells(text: str) -> list[list[str]]:
    """Return the cells of a printed table."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


@contextlib.contextmanager
def served(app: Flask) -> Iterator[str]:
    """Serve an application in a thread, and yield its URL."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Running:
    """A command that serves requests."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []

    def says(self, text: str) -> str:
        """Read the command's output up to the line with a text, and return that line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}:\n{''.join(self.said)}")

    def url(self) -> str:
        """Return the URL in the line that announces the server."""
        words = self.says("http://127.0.0.1:").split()
        return next(word for word in words if word.startswith("http://"))

    def ends(self, number: signal.Signals) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)
