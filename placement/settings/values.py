"""The settings as plain frozen values, each field the option of the same name with its type, default and help.

Names and defaults are openstack-placement's and oslo.log's, except in the groups that are this server's own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from placement.domain.tree import PlaceLock
from placement.settings.planner.values import PlannerSettings

if TYPE_CHECKING:
    from oslo_config.cfg import ConfigOpts

MISSING_CONSUMER_ID = "00000000-0000-0000-0000-000000000000"
"""Project and user of allocations from clients too old (below 1.8) to name them."""
MAX_BODY = 4 * 1024 * 1024
"""The limit for request bodies, in bytes: some 30,000 allocations, which take seconds to validate."""


def option(help_: str, *, default: Any = None, **details: Any) -> Any:
    """Return a field that is an option; the details are those of oslo.config. What may hold a password is not shown."""
    return field(default=default, repr=not details.get("secret"), metadata={"help": help_, **details})


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """``[placement_database]``. ``connection`` is unmodified; the store normalises it."""

    connection: str = option(
        "URL of the database, for example postgresql://placement:PASSWORD@HOST/placement, mysql+pymysql://... or "
        "sqlite:////var/lib/placement/placement.sqlite. Required if anything is configured. Write a dollar sign twice.",
        secret=True,
        default="",
    )
    slave_connection: str = option(
        "URL of a standby of this database, PostgreSQL or MariaDB. It serves allocation candidates, explanations "
        "and bulk reads, which may be slightly out of date. The primary serves them while the standby cannot be "
        "reached, is more than 5 seconds behind, or has an older schema.",
        secret=True,
        default="",
    )
    connection_parameters: str = option("Query string appended to the URL: name=value&...", default="")
    sqlite_synchronous: bool = option("Whether SQLite waits until data is on disk.", default=True)
    mysql_sql_mode: str = option(
        "sql_mode of MySQL and MariaDB sessions; empty: the server's default.", default="TRADITIONAL"
    )
    connection_recycle_time: int = option("Seconds after which a pooled connection is replaced.", default=3600)
    max_pool_size: int | None = option("Number of connections that each process keeps open.")
    max_overflow: int | None = option("Number of connections that each process may open beyond max_pool_size.")
    pool_timeout: int | None = option("Seconds to wait for a free connection from the pool.")
    connect_timeout: int = option(
        "Seconds to wait for a new connection to PostgreSQL or MariaDB, unless the URL says otherwise.",
        min=2,
        default=5,
    )
    statement_timeout: int = option(
        "Seconds that a request waits for the answer to one statement. If the database, a proxy or a firewall is "
        "silent for that long, the connection is closed and the request answered with 503. 0: no limit.",
        min=0,
        default=30,
    )
    max_retries: int = option("Attempts to reach the database at start; -1: unlimited.", default=10)
    retry_interval: int = option("Seconds between these attempts.", default=10)
    connection_debug: int = option("How much SQL is logged: 0 none, 50 statements, 100 also rows.", default=0)
    sync_on_startup: bool = option("Whether the server migrates the database when it starts.", default=False)
    plain_sqlalchemy: bool = option(
        "Send every statement to PostgreSQL through SQLAlchemy, instead of sending most of them straight to the "
        "driver. Slower. Use it to find out whether the fast path causes a problem; the fast path also switches "
        "itself off where it cannot work.",
        default=False,
    )


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """``[placement]``. A strategy of None means that the ranking decides."""

    randomize_allocation_candidates: bool = option(
        "Shuffle allocation candidates, so that clients that take the first one spread over the providers.",
        default=False,
    )
    max_allocation_candidates: int = option(
        "Maximum number of candidates that one request may find, whatever its limit; -1: no maximum.", default=-1
    )
    allocation_candidates_generation_strategy: str | None = option(
        "The order in which trees contribute candidates. It matters when a limit cuts the list. If unset, "
        "breadth-first if [ranking] is enabled, otherwise depth-first.",
        choices=(
            ("depth-first", "all candidates of one tree, then those of the next"),
            ("breadth-first", "one candidate of each tree, then the second of each, and so on"),
        ),
    )
    incomplete_consumer_project_id: str = option(
        "Project of allocations by clients too old (microversion below 1.8) to name one.", default=MISSING_CONSUMER_ID
    )
    incomplete_consumer_user_id: str = option(
        "User of allocations by clients too old (microversion below 1.8) to name one.", default=MISSING_CONSUMER_ID
    )
    allocation_conflict_retry_count: int = option(
        "How often to retry a write of allocations that lost to a concurrent writer.", default=10
    )


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """``[ranking]``. ``near_equal`` is in points of 100; ``planner_file`` is unmodified."""

    enabled: bool = option(
        "Whether allocation candidates come best first, by the default profile of the planner file. Otherwise "
        "their order is stable but has no meaning.",
        default=True,
    )
    near_equal: float = option(
        "With [placement] randomize_allocation_candidates: provider trees whose scores (0 to 100) differ by no "
        "more than this change places at random, so that clients that ask at the same time do not all take the same "
        "one.",
        min=0,
        max=100,
        default=1.0,
    )
    planner_file: str | None = option(
        "The planner file: profiles, levels and more, see the sample planner.yaml. A relative path is searched "
        "for in the directories of --config-dir and next to the configuration files. If unset, planner.yaml in these "
        "places is used if it exists, otherwise built-in defaults.",
        sample_default="planner.yaml",
    )

    def __post_init__(self) -> None:
        if not 0 <= self.near_equal <= 100:  # also refuses NaN
            raise ValueError(f"[ranking] near_equal must be a number from 0 to 100, but is {self.near_equal}.")


@dataclass(frozen=True, slots=True)
class PlannerApiSettings:
    """``[planner]``. ``exclusive_for_all``: whether plain requests stay out of places that are held exclusively."""

    enabled: bool = option("Whether to serve the planner API below /planner/v1; otherwise it is 404.", default=True)
    exclusive_for_all: bool = option(
        "Whether a place that a claim of the planner holds exclusively is closed to everybody: GET "
        "/allocation_candidates leaves it out, and PUT and POST /allocations of others into it are 409. The section "
        "exclusive of the planner file names the locks of places; without locks, this has no effect.",
        default=True,
    )


@dataclass(frozen=True, slots=True)
class FairnessSettings:
    """``[fair_share]``: which allocations must pass the fair-share gate. The planner file defines the shares."""

    enforce: str = option(
        "Whose requests are refused if they are not fair. The section fair_share of the planner file defines fair "
        "shares; see docs/how-to/give-a-tenant-a-share.md. A plain client gets 409 if the request would take a queue "
        "or project beyond its entitlement without leaving enough for all others, or beyond a limit. Requests that "
        "give back or move resources always pass.",
        choices=(
            ("claims", "only claims of the planner that ask for it"),
            ("plain", "also PUT and POST /allocations for consumers of the types below"),
        ),
        default="claims",
    )
    consumer_types: tuple[str, ...] = option(
        'With enforce = plain: the consumer types that are checked, and whose usage counts. "unknown" means '
        "consumers without a type; nova sets none.",
        sample_default=["INSTANCE", "unknown"],
        default=(),
    )

    def __post_init__(self) -> None:
        if self.enforce == "plain" and not self.consumer_types:
            raise ValueError("[fair_share] enforce = plain needs consumer_types, for example INSTANCE,unknown.")


@dataclass(frozen=True, slots=True)
class UiSettings:
    """``[ui]``: whether there is a console, and what distinguishes it from other regions' consoles."""

    enabled: bool = option("Whether to serve the console below /ui; otherwise it is 404.", default=True)
    title: str = option("Name of this cloud or region, shown at the top of every page of the console.", default="")
    colour: str = option(
        "Colour of a stripe at the top of every page of the console, such as #b3261e or the name of a colour, so "
        "that nobody mistakes one region for another.",
        sample_default="#b3261e",
        default="",
    )
    manual: str = option(
        "Address of the folder docs of this server's source, as your users can open it in a browser. What needs "
        "attention then links to the pages that say what to do.",
        sample_default="https://git.example.net/placement-server/blob/main/docs",
        default="",
    )

    def __post_init__(self) -> None:
        if self.manual and not self.manual.startswith(("http://", "https://")):
            raise ValueError(f"[ui] manual must begin with http:// or https://; found {self.manual}.")
        if self.colour and not re.fullmatch(r"#[0-9a-fA-F]{6}|[a-zA-Z]{3,30}", self.colour):
            raise ValueError(f"[ui] colour must be like #1d4f91, or the name of a colour; found {self.colour}.")


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """``[journal]``."""

    enabled: bool = option(
        "Whether to write every change of a provider or consumer to the journal and serve GET "
        "/planner/v1/journal; otherwise it is 404. 'placement db upgrade' creates or removes the triggers that write "
        "it.",
        default=True,
    )
    keep_days: int = option(
        "Number of days for which the server keeps the journal: it deletes older rows in the background, a "
        "thousand at a time. 0: it deletes none.",
        min=0,
        default=90,
    )
    cadf: str | None = option(
        "Where 'placement journal cadf' writes changes as CADF events: an absolute path is a file that gets one "
        "JSON document per line, anything else is the name of a logger."
    )
    listeners: int = option(
        "How many clients of each process may follow the journal as server-sent events at the same time; further "
        "ones get 503. Each holds a connection, but no thread that serves requests.",
        min=0,
        default=50,
    )


@dataclass(frozen=True, slots=True)
class AccessLogSettings:
    """``[access_log]``."""

    enabled: bool = option(
        "Log each request: caller, method and path, status, size, microversion, seconds and number of SQL "
        "statements. The logger is placement.access; successful health checks are logged at DEBUG.",
        default=True,
    )


@dataclass(frozen=True, slots=True)
class HeadroomSettings:
    """``[headroom]``."""

    seconds: int = option(
        "The metrics show how many more of each flavor of the planner file fit. When metrics are read and the "
        "last count is older than this, they are counted again in the background.",
        min=1,
        default=60,
    )
    by_hypervisor: bool = option("Also count how many fit on each host.", default=False)


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """``[metrics]``. ``listen`` is HOST:PORT."""

    enabled: bool = option(
        "Collect metrics for Prometheus and serve them at /metrics, to callers that the policy rule "
        "placement:metrics:show allows. Requires the extra metrics.",
        default=False,
    )
    listen: str | None = option(
        "HOST:PORT where metrics are served to everybody, for example 127.0.0.1:9778. 'placement serve' listens "
        "there; other servers must be told to (gunicorn --bind)."
    )
    directory: str | None = option(
        "Directory in which the processes of this server share their counts; it should be emptied at start. If "
        "unset, $PROMETHEUS_MULTIPROC_DIR, or one below systemd's $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /tmp."
    )
    capacity: bool = option(
        "Include inventory and usage of every provider, with the names that the OpenStack exporter uses.", default=True
    )
    allocations: bool = option(
        "Include what every consumer holds, with the name that the OpenStack exporter uses: one series for each "
        "consumer, provider and resource class.",
        default=False,
    )

    def __post_init__(self) -> None:
        if self.listen is not None and not self.listen.rpartition(":")[2].isdecimal():
            raise ValueError(f"[metrics] listen must be HOST:PORT, but is {self.listen}.")

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and port to listen on, if the metrics have a port of their own."""
        if self.listen is None:
            return None
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True)
class LoggingSettings:
    """The logging options of ``[DEFAULT]`` that have an effect here, with oslo.log's names and meanings."""

    debug: bool = option("Log debug messages too.", default=False)
    log_options: bool = option("With debug: log the value of every option at start.", default=True)
    log_config_append: str | None = option(
        "A file in the format of Python's logging.config. It replaces all other logging options here.",
        deprecated_name="log_config",
    )
    log_date_format: str = option("Format of %(asctime)s.", default="%Y-%m-%d %H:%M:%S")
    log_file: str | None = option("File to log to. It may be rotated while in use.", deprecated_name="logfile")
    log_dir: str | None = option(
        "Directory of log_file; without log_file, the directory of placement.log.", deprecated_name="logdir"
    )
    use_stderr: bool = option(
        "Log to standard error too. This is the default if nothing else is configured.", default=False
    )
    use_syslog: bool = option("Log to syslog too.", default=False)
    syslog_log_facility: str = option("The syslog facility.", default="LOG_USER")
    use_journal: bool = option(
        "Log to systemd's journal too. Requires the Python package systemd-python; without it, the log goes to "
        "standard error.",
        default=False,
    )
    use_json: bool = option(
        "Log one JSON object per message; the format strings below are then ignored.", default=False
    )
    logging_context_format_string: str = option(
        "Format of messages that belong to a request.",
        default="%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
        "[%(global_request_id)s %(request_id)s %(user_identity)s] %(instance)s%(message)s",
    )
    logging_default_format_string: str = option(
        "Format of all other messages.",
        default="%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(instance)s%(message)s",
    )
    logging_debug_format_suffix: str = option(
        "Suffix of debug messages.", default="%(funcName)s %(pathname)s:%(lineno)d"
    )
    logging_exception_prefix: str = option(
        "Prefix of each line of a traceback.", default="%(asctime)s.%(msecs)03d %(process)d ERROR %(name)s %(instance)s"
    )
    logging_user_identity_format: str = option(
        "Format of %(user_identity)s.",
        default="%(user)s %(project)s %(domain)s %(system_scope)s %(user_domain)s %(project_domain)s",
    )
    default_log_levels: tuple[str, ...] = option(
        "Levels of individual loggers, as logger=LEVEL.",
        default=(
            "sqlalchemy=WARNING",
            "alembic=WARNING",
            "urllib3=WARNING",
            "requests=WARNING",
            "keystoneauth=WARNING",
            "keystonemiddleware=WARNING",
            "oslo.cache=INFO",
            "oslo_policy=INFO",
            "dogpile=INFO",
            "stevedore=WARNING",
        ),
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration; fields that are no group are options that ``options.py`` explains.

    ``auth_is_implicit`` tells that noauth2 is in force only because nothing at all was configured. ``ignored_options``
    are set, but have no effect here. ``source`` is the parsed oslo.config object, for libraries that read it.
    """

    database: DatabaseSettings
    placement: PlacementSettings = PlacementSettings()
    ranking: RankingSettings = RankingSettings()
    planner_api: PlannerApiSettings = PlannerApiSettings()
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    fairness: FairnessSettings = FairnessSettings()
    ui: UiSettings = UiSettings()
    journal: JournalSettings = JournalSettings()
    logging: LoggingSettings = LoggingSettings()
    access_log: AccessLogSettings = AccessLogSettings()
    metrics: MetricsSettings = MetricsSettings()
    headroom: HeadroomSettings = HeadroomSettings()
    auth_strategy: str = "keystone"
    auth_is_implicit: bool = False
    http_basic_file: str | None = None
    http_basic_user_roles: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    max_worker_memory_mb: int = 0
    proxy_headers_parsing: bool = False
    max_request_body_size: int = MAX_BODY
    ignored_options: tuple[str, ...] = ()
    source: "ConfigOpts | None" = None

    @property
    def locks_for_all(self) -> tuple[PlaceLock, ...]:
        """The locks of places that plain requests respect as well."""
        locks = self.planner.exclusive if self.planner_api.exclusive_for_all else {}
        return tuple([PlaceLock(lock, self.planner.levels.get(level)) for level, lock in locks.items()])
