"""The settings as plain frozen values. Tests and the demo construct them directly; ``load`` reads them from files.

The fields of each group are named like its options, so configuration files and this module read alike.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from placement.domain.places import PlaceLock
from placement.settings.planner.values import PlannerSettings

if TYPE_CHECKING:
    from oslo_config.cfg import ConfigOpts

MISSING_CONSUMER_ID = "00000000-0000-0000-0000-000000000000"
"""Project and user of allocations from clients too old (below 1.8) to name them."""

MAX_BODY = 4 * 1024 * 1024
"""The limit for request bodies, in bytes: some 30,000 allocations, which take seconds to validate."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """``[placement_database]``. ``connection`` is unmodified; the store normalises it."""

    connection: str = field(repr=False)  # may contain a password
    connection_parameters: str = ""
    slave_connection: str = field(default="", repr=False)
    sqlite_synchronous: bool = True
    mysql_sql_mode: str = "TRADITIONAL"
    connection_recycle_time: int = 3600
    max_pool_size: int | None = None
    max_overflow: int | None = None
    pool_timeout: int | None = None
    connect_timeout: int = 5
    statement_timeout: int = 30
    max_retries: int = 10
    retry_interval: int = 10
    connection_debug: int = 0
    sync_on_startup: bool = False
    plain_sqlalchemy: bool = False


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """``[placement]``. A strategy of None means that the ranking decides."""

    randomize_allocation_candidates: bool = False
    max_allocation_candidates: int = -1
    allocation_candidates_generation_strategy: str | None = None
    incomplete_consumer_project_id: str = MISSING_CONSUMER_ID
    incomplete_consumer_user_id: str = MISSING_CONSUMER_ID
    allocation_conflict_retry_count: int = 10


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """``[ranking]``. ``near_equal`` is in points of 100; ``planner_file`` is unmodified."""

    enabled: bool = True
    near_equal: float = 1.0
    planner_file: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.near_equal <= 100:  # also refuses NaN
            raise ValueError(f"[ranking] near_equal must be a number from 0 to 100, but is {self.near_equal}.")


@dataclass(frozen=True, slots=True)
class PlannerApiSettings:
    """``[planner]``. ``exclusive_for_all``: whether plain requests stay out of places that are held exclusively."""

    enabled: bool = True
    exclusive_for_all: bool = True


@dataclass(frozen=True, slots=True)
class FairnessSettings:
    """``[fair_share]``: which allocations must pass the fair-share gate. The planner file defines the shares."""

    enforce: str = "claims"
    consumer_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.enforce == "plain" and not self.consumer_types:
            raise ValueError("[fair_share] enforce = plain needs consumer_types, for example INSTANCE,unknown.")


@dataclass(frozen=True, slots=True)
class UiSettings:
    """``[ui]``: whether there is a console, and what distinguishes it from other regions' consoles."""

    enabled: bool = True
    title: str = ""
    colour: str = ""

    def __post_init__(self) -> None:
        if self.colour and not re.fullmatch(r"#[0-9a-fA-F]{6}|[a-zA-Z]{3,30}", self.colour):
            raise ValueError(f"[ui] colour must be like #1d4f91, or the name of a colour; found {self.colour}.")


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """``[journal]``."""

    enabled: bool = True
    keep_days: int = 90
    listeners: int = 50
    cadf: str | None = None


@dataclass(frozen=True, slots=True)
class AccessLogSettings:
    """``[access_log]``."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class HeadroomSettings:
    """``[headroom]``."""

    seconds: int = 60
    by_hypervisor: bool = False


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """``[metrics]``. ``listen`` is HOST:PORT."""

    enabled: bool = False
    listen: str | None = None
    directory: str | None = None
    capacity: bool = True
    allocations: bool = False

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


DEFAULT_LOG_LEVELS = (
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
)


@dataclass(frozen=True, slots=True)
class LoggingSettings:
    """The logging options of ``[DEFAULT]`` that have an effect here, with their oslo.log meanings."""

    debug: bool = False
    log_options: bool = True
    log_config_append: str | None = None
    log_date_format: str = "%Y-%m-%d %H:%M:%S"
    log_file: str | None = None
    log_dir: str | None = None
    use_stderr: bool = False
    use_syslog: bool = False
    use_journal: bool = False
    syslog_log_facility: str = "LOG_USER"
    use_json: bool = False
    logging_context_format_string: str = (
        "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
        "[%(global_request_id)s %(request_id)s %(user_identity)s] %(instance)s%(message)s"
    )
    logging_default_format_string: str = (
        "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(instance)s%(message)s"
    )
    logging_debug_format_suffix: str = "%(funcName)s %(pathname)s:%(lineno)d"
    logging_exception_prefix: str = "%(asctime)s.%(msecs)03d %(process)d ERROR %(name)s %(instance)s"
    logging_user_identity_format: str = (
        "%(user)s %(project)s %(domain)s %(system_scope)s %(user_domain)s %(project_domain)s"
    )
    default_log_levels: tuple[str, ...] = DEFAULT_LOG_LEVELS


def _no_roles() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration.

    Args:
        database: ``[placement_database]``.
        placement: ``[placement]``.
        ranking: ``[ranking]``.
        planner_api: ``[planner]``.
        planner: what the planner file says.
        fairness: ``[fair_share]``.
        ui: ``[ui]``.
        journal: ``[journal]``.
        logging: the logging options of ``[DEFAULT]``.
        access_log: ``[access_log]``.
        metrics: ``[metrics]``.
        auth_strategy: ``[api] auth_strategy``: keystone, http_basic or noauth2.
        auth_is_implicit: whether noauth2 is in force only because nothing at all was configured.
        http_basic_file: ``[http_basic] user_file``, an htpasswd file with bcrypt hashes.
        http_basic_user_roles: ``[http_basic] user_roles``, from user to roles.
        max_worker_memory_mb: ``[api] max_worker_memory_mb``; 0 sets no bound.
        proxy_headers_parsing: ``[oslo_middleware] enable_proxy_headers_parsing``.
        max_request_body_size: ``[oslo_middleware] max_request_body_size``, bytes.
        ignored_options: known options that are set but have no effect here; logged once.
        source: the parsed oslo.config object, for keystonemiddleware, oslo.policy and CORS only.
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
    http_basic_user_roles: Mapping[str, tuple[str, ...]] = field(default_factory=_no_roles)
    max_worker_memory_mb: int = 0
    proxy_headers_parsing: bool = False
    max_request_body_size: int = MAX_BODY
    ignored_options: tuple[str, ...] = ()
    source: "ConfigOpts | None" = None

    @property
    def locks_for_all(self) -> tuple[PlaceLock, ...]:
        """The locks of places that plain requests respect as well."""
        if not self.planner_api.exclusive_for_all:
            return ()
        traits = self.planner.levels
        return tuple([PlaceLock(lock, traits.get(level)) for level, lock in self.planner.exclusive.items()])
