"""Logging as configured, in separate processes, because logging is global to a process."""

import json
import logging
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_log import log as oslo_log
from oslo_log.formatters import ContextFormatter

from placement.domain.identity import CURRENT_REQUEST, Identity, serve_request
from placement.logs import RequestFormatter
from placement.settings import LoggingSettings

pytestmark = pytest.mark.exhaustive  # starts processes

PROGRAM = """
import logging, warnings
from placement.domain.identity import CURRENT_REQUEST, Identity, serve_request
from placement.errors import ConfigurationError
from placement.logs import configure_logging
from placement.settings import load
try:
    configure_logging(load())
except ConfigurationError as error:
    raise SystemExit(str(error))
log = logging.getLogger("placement.test")
log.info("outside %s", "a request")
serve_request("req-1", "anything\\nat all", Identity("alice", "p1", user_domain_id="home"))
log.info("inside")
log.debug("details")
logging.getLogger("sqlalchemy").info("chatter")
warnings.warn("beware")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
serve_request("req-2", "req-" + "0" * 36)
log.info("relayed")
CURRENT_REQUEST.set(None)
log.info("finished")
"""


def run(directory: Path, PYTHONPATH: str = "", **options: str) -> subprocess.CompletedProcess[str]:  # noqa: N803
    """Run the program with these options in [DEFAULT]."""
    lines = ["[placement_database]", "connection = postgresql://u:hidden@db/p", "[DEFAULT]"]
    lines += [f"{name} = {value}" for name, value in options.items()]
    (directory / "placement.conf").write_text("\n".join(lines))
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([PYTHONPATH, *sys.path]),
            "OS_PLACEMENT_CONFIG_DIR": str(directory),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def said_by_default(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said without options: on standard error."""
    return run(tmp_path_factory.mktemp("default")).stderr


def test_lines_name_the_request_and_an_id_that_the_client_sent_if_it_is_one(said_by_default: str) -> None:
    lines = said_by_default.splitlines()
    assert lines[0].endswith(" INFO placement.test [-] outside a request")
    assert lines[1].endswith(" INFO placement.test [None req-1 alice p1 - - home -] inside")
    assert "beware" in lines[2]
    assert f"[req-{'0' * 36} req-2 - - - - - -] relayed" in said_by_default
    assert "[-] finished" in said_by_default
    assert [word for word in ("details", "chatter", "at all") if word in said_by_default] == []


KNOWN_CALLER = Identity(
    "alice", "p1", system_scope="all", domain_id="d1", user_domain_id="home", project_domain_id="default"
)


@pytest.mark.parametrize("caller", [None, Identity("alice"), KNOWN_CALLER], ids=["nobody", "a user", "all fields"])
@pytest.mark.parametrize("sent_id", [None, "req-" + "0" * 36], ids=["own id", "relayed"])
def test_a_line_is_the_one_that_oslo_log_writes(caller: Identity | None, sent_id: str | None) -> None:
    options = cfg.ConfigOpts()
    oslo_log.register_options(options)
    options([])
    record = logging.LogRecord("placement.test", logging.INFO, __file__, 1, "%d hosts", (3,), None)
    serve_request("req-1", sent_id, caller)
    ours = RequestFormatter(options=LoggingSettings()).format(record)
    CURRENT_REQUEST.set(None)
    who = caller or Identity("")
    named = ("user_id", "project_id", "system_scope", "domain_id", "user_domain_id", "project_domain_id")
    values = {name: getattr(who, name) for name in named}
    record.context = RequestContext(request_id="req-1", global_request_id=sent_id, overwrite=False, **values)
    assert ours == ContextFormatter(config=options, datefmt=options.log_date_format).format(record)


KOLLA_BEGINS = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}.\d{3} \d+ \S+ \S+ \[.*\]"
KOLLA_EVENT = (
    r"(?P<Timestamp>\S+ \S+) (?P<Pid>\d+) (?P<log_level>\S+) (?P<python_module>\S+) ((?:\[)(?:None|req-)"
    r"(?P<global_request_id>\S+)? (?:None|req-)(?P<request_id>\S+) (?P<user_id>\S+) (?P<tenant_id>\S+) "
    r"(?P<domain_id>\S+) (?P<system_scope>\S+) (?P<user_domain>\S+) (?P<project_domain>\S+)(?:\]))?(?P<Payload>.*)?$"
)
"""What kolla-ansible tells fluentd: how an event begins, and its fields."""
LOGSTASH_EVENT = (
    r"(?P<logdate>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)\s*(?P<pid>\d+)?\s*"
    r"(?P<loglevel>AUDIT|CRITICAL|DEBUG|INFO|TRACE|WARNING|ERROR) \[?\b(?P<module>\S+)\b\]?\s*(?P<logmessage>.*)?"
)
"""The usual filter of logstash for oslo.log's lines, with its patterns written out."""


def test_collectors_of_the_field_find_the_fields_of_each_line(said_by_default: str) -> None:
    lines = [line for line in said_by_default.splitlines() if line.startswith("20")]
    events = [line for line in lines if re.match(KOLLA_BEGINS, line)]
    assert all(" ERROR placement.test " in line for line in set(lines) - set(events))  # the lines of a traceback
    parsed = [match.groupdict() for line in events if (match := re.match(KOLLA_EVENT, line))]
    assert [event["request_id"] for event in parsed] == [None, "1", "1", "1", "2", None]
    inside, relayed = parsed[1], parsed[4]
    assert (inside["user_id"], inside["tenant_id"], inside["user_domain"]) == ("alice", "p1", "home")
    assert inside["Payload"] == " inside"
    assert relayed["global_request_id"] == "0" * 36
    found = [re.match(LOGSTASH_EVENT, line) for line in lines]
    assert {match and match["module"] for match in found} == {"placement.test", "py.warnings"}


def test_a_full_disk_costs_one_line_and_no_request(tmp_path: Path) -> None:
    done = run(tmp_path, log_file="/dev/full")
    assert done.returncode == 0
    assert done.stderr == "placement: /dev/full cannot be written: No space left on device\n"


def test_every_line_of_a_traceback_has_the_prefix(tmp_path: Path) -> None:
    said = run(tmp_path, logging_exception_prefix='"TRACE %(name)s "').stderr
    trace = said[said.index("failed") : said.index("relayed")].splitlines()[1:-1]
    assert trace[-1].startswith("TRACE placement.test ZeroDivisionError")
    assert all(line.startswith("TRACE placement.test ") for line in trace)


@pytest.mark.parametrize(
    ("options", "present", "absent"),
    [
        ({"debug": "true"}, ["details <module>", "placement_database.connection  = ****", "log_dir"], ["hidden"]),
        ({"debug": "true", "log_options": "false"}, ["details"], ["log_dir"]),
        ({"default_log_levels": "sqlalchemy=INFO,placement.test=WARNING"}, ["chatter"], ["inside"]),
        ({"log_color": "true", "rate_limit_burst": "3"}, ["[DEFAULT] log_color, [DEFAULT] rate_limit_burst"], []),
    ],
    ids=["debug shows options but no secret", "no options", "levels of single loggers", "options without effect"],
)
def test_options_decide_what_is_said(
    tmp_path: Path, options: dict[str, str], present: list[str], absent: list[str]
) -> None:
    said = run(tmp_path, **options).stderr
    assert [part for part in present if part not in said] == []
    assert [part for part in absent if part in said] == []


def test_a_log_file_in_a_directory_gets_everything(tmp_path: Path) -> None:
    assert run(tmp_path, log_dir=str(tmp_path), log_file="api.log").stderr == ""
    assert "outside a request" in (tmp_path / "api.log").read_text()


@pytest.mark.skipif(find_spec("systemd") is not None, reason="systemd-python is installed")
def test_without_its_package_the_journal_is_standard_error_and_that_is_said_once(tmp_path: Path) -> None:
    said = run(tmp_path, use_journal="true").stderr
    assert said.count("use_journal needs the package systemd-python") == 1
    assert "[None req-1 alice p1 - - home -] inside" in said


def test_with_its_package_the_journal_gets_every_message(tmp_path: Path) -> None:
    """The handler is called like systemd-python's; here it writes a file."""
    package = tmp_path / "systemd"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "journal.py").write_text(
        "import logging\n"
        "class JournalHandler(logging.FileHandler):\n"
        "    def __init__(self, SYSLOG_IDENTIFIER):\n"
        f"        super().__init__({str(tmp_path)!r} + '/' + SYSLOG_IDENTIFIER)\n"
    )
    said = run(tmp_path, use_journal="true", PYTHONPATH=str(tmp_path)).stderr
    assert "inside" in (tmp_path / "placement").read_text()
    assert "inside" not in said


OF_HELM = (Path(__file__).parents[1] / "configurations" / "files" / "openstack-helm-logging.conf").read_text()
"""It names formatters of oslo.log, which fail on every line without oslo.log's options."""


@pytest.mark.parametrize("formatter", ["ContextFormatter", "JSONFormatter"])
def test_formatters_of_oslo_log_in_a_file_write_what_they_should(tmp_path: Path, formatter: str) -> None:
    file = tmp_path / "logging.conf"
    file.write_text(OF_HELM.replace("ContextFormatter", formatter).replace("%H:%M:%S", "%H o'clock"))
    pattern = "%(asctime)s %(request_id)s %(message)s"
    done = run(tmp_path, log_config_append=str(file), logging_context_format_string=pattern)
    assert "Logging error" not in done.stderr
    if formatter == "JSONFormatter":
        assert "inside" in [json.loads(line)["message"] for line in done.stdout.splitlines()]
    else:
        assert "o'clock req-1 failed" in done.stdout


def test_a_file_that_names_what_is_not_installed_tells_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "logging.conf").write_text(OF_HELM.replace("oslo_log", "no_log"))
    done = run(tmp_path, log_config_append=str(tmp_path / "logging.conf"))
    assert done.returncode == 1
    assert done.stderr.endswith("names no_log, which is not installed: pip install no.log.\n")


@pytest.mark.parametrize(
    "option",
    [
        {"log_file": "/nowhere/at/all.log"},
        {"log_config_append": "/nowhere/logging.ini"},
        {"default_log_levels": "sqlalchemy=LOUD"},
        {"use_syslog": "true", "syslog_log_facility": "LOG_NOWHERE"},
    ],
    ids=lambda option: next(iter(option)),
)
def test_what_cannot_be_set_up_is_said_in_one_line(tmp_path: Path, option: dict[str, str]) -> None:
    done = run(tmp_path, **option)
    assert done.returncode == 1
    assert done.stderr.startswith("Logging cannot be set up as configured: ")
    assert done.stderr.count("\n") == 1


def test_json_has_one_object_for_each_message(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run(tmp_path, use_json="true").stderr.splitlines()]
    outside, inside = lines[0], lines[1]
    assert outside["message"] == "outside a request"
    assert "context" not in outside
    assert inside["context"]["request_id"] == "req-1"
    assert (inside["context"]["user"], inside["context"]["project"]) == ("alice", "p1")
    assert inside["context"]["global_request_id"] is None
    (failed,) = [line for line in lines if line["message"] == "failed"]
    assert failed["traceback"][-1].startswith("ZeroDivisionError")
