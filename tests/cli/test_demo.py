"""``placement demo`` shows a whole claim, keeps serving, and leaves nothing behind however it ends."""

import json
import shlex
import signal
import socket
import urllib.request

import pytest

from tests.cli.commands import Command, Running


def test_the_walk_ends_with_a_claim_that_is_counted_and_warns_of_nothing(placement: Command):
    """It needs neither a terminal nor a configuration."""
    done = placement.process("demo", "--port", "0", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["1", "compute2-numa1", "compute2-gpu0", "compute2-nic0", "storage1"] in lines  # its only GPU, so packed
    claimed = {(row[0], row[1]): row[2:] for row in lines if len(row) == 6 and row[4] == "of"}
    assert [claimed[key] for key in claimed if key[1] == "PGPU"] == [["1", "1", "of", "1"]]
    assert [claimed[key] for key in claimed if key[1] == "SRIOV_NET_VF"] == [["2", "2", "of", "8"]]
    assert "The same request again: 4 candidates" in done.stdout


def test_the_lines_to_try_work_until_a_signal_ends_everything(placement: Command):
    """Two demos run side by side and are ended by different signals."""
    with placement.running("demo") as one, placement.running("demo") as other:
        ports = {_port_to_try(one), _port_to_try(other)}
        assert len(ports) == 2
        assert one.ends(signal.SIGINT) == 0
        assert other.ends(signal.SIGHUP) == 0
    assert list(placement.temporary.iterdir()) == []
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_it_is_ended_from_outside_while_it_is_still_telling(placement: Command):
    with placement.running("demo", "--port", "0") as demo:
        demo.says("The server is at")
        assert demo.ends(signal.SIGTERM) == 0
    assert list(placement.temporary.iterdir()) == []


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(placement: Command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = placement.process("demo", "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: Cannot listen on 127.0.0.1 port {port}: Address already in use.\n"


def _port_to_try(demo: Running) -> int:
    """Do what the lines ask curl to do; return the port in them."""
    for _ in range(3):
        answer = _answer_of_curl(demo.says("curl "))
    assert answer["project_id"] == "demo"
    return int(demo.said[-1].partition("127.0.0.1:")[2].partition("/")[0])


def _answer_of_curl(line: str) -> dict[str, object]:
    """Do what the line asks curl to do."""
    words = shlex.split(line.partition("|")[0])
    headers = [words[index + 1].split(": ", 1) for index, word in enumerate(words) if word == "-H"]
    with urllib.request.urlopen(urllib.request.Request(words[-1], headers=dict(headers)), timeout=30) as answer:
        document = json.load(answer)
    assert document
    return document
