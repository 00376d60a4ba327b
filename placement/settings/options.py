"""The options an operator can set, for oslo.config. The sample configuration file is generated from ``list_opts``.

Most are fields of the settings (``values.py``); here are those that only libraries read, or that mean something else.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, get_args, get_origin

from oslo_config import cfg

from placement.settings.values import (
    MAX_BODY,
    AccessLogSettings,
    DatabaseSettings,
    FairnessSettings,
    HeadroomSettings,
    JournalSettings,
    LoggingSettings,
    MetricsSettings,
    PlacementSettings,
    PlannerApiSettings,
    RankingSettings,
    UiSettings,
)

API = (
    cfg.StrOpt(
        "auth_strategy",
        choices=(
            ("keystone", "tokens of the identity service, validated by keystonemiddleware"),
            ("http_basic", "user names and passwords in a file, see [http_basic]"),
            ("noauth2", "no check at all: for development only"),
        ),
        sample_default="keystone",
        deprecated_group="DEFAULT",
        help="How callers authenticate. If unset, keystone, unless nothing at all is configured (no configuration "
        "file, no OS_* environment variable): then it is noauth2, and only callers on the same machine are served.",
    ),
    cfg.IntOpt(
        "max_worker_memory_mb",
        default=0,
        min=0,
        help="A gunicorn worker that uses more than this many MB of memory after an answer accepts no further "
        "requests, finishes those in progress, and is replaced. 0: never. For uWSGI use reload-on-rss.",
    ),
)

HTTP_BASIC = (
    cfg.StrOpt(
        "user_file",
        default="/etc/placement/htpasswd",
        help='File of users and bcrypt hashes, one "name:hash" per line, as "htpasswd -nB NAME" prints them. The '
        "server rereads a file that has changed.",
    ),
    cfg.DictOpt(
        "user_roles",
        default={},
        help='Roles of users, for example "alice:admin, bob:reader+member". A user who is not listed has no role. The '
        "project of a user is the user's own name.",
    ),
)

OSLO_MIDDLEWARE = (
    cfg.BoolOpt(
        "enable_proxy_headers_parsing",
        default=False,
        help="Trust the X-Forwarded-* headers. Set this only behind a proxy that sets or removes each header.",
    ),
    cfg.IntOpt(
        "max_request_body_size",
        default=MAX_BODY,
        min=1,
        help="Maximum size of a request body in bytes; a larger one is refused with 413.",
    ),
)

PROFILER = (
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Trace requests that carry a signed trace header, with OSprofiler, whose other options count, too.",
    ),
    cfg.StrOpt("connection_string", default="messaging://", secret=True, help="Where OSprofiler sends its traces."),
    cfg.StrOpt("hmac_keys", default="SECRET_KEY", secret=True, help="Keys for the signatures of trace headers."),
    cfg.BoolOpt(
        "trace_sqlalchemy",
        default=False,
        help="Trace SQL statements, too. On PostgreSQL all of them then go through SQLAlchemy, which is slower.",
    ),
)

AUDIT = (
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Send CADF events for each request, with the audit middleware of keystonemiddleware. "
        "[audit_middleware_notifications] says where to.",
    ),
    cfg.StrOpt(
        "audit_map_file",
        default="/etc/placement/api_audit_map.conf",
        help="File that maps request paths to the resource types named in events.",
    ),
    cfg.StrOpt("ignore_req_list", default="", help="Comma-separated methods that send no event, such as GET,HEAD."),
)

_HEADERS = ("X-Auth-Token", "X-Openstack-Request-Id")
_IDENTITY_HEADERS = ("X-Identity-Status", "X-Roles", "X-Service-Catalog", "X-User-Id", "X-Tenant-Id")

CORS = (
    cfg.ListOpt(
        "allowed_origin",
        help='Web origins whose pages may call this API, for example "https://horizon.example.com"; unset: none.',
    ),
    cfg.BoolOpt("allow_credentials", default=True, help="Whether such calls may carry credentials."),
    cfg.ListOpt(
        "expose_headers",
        default=[*_HEADERS, "X-Subject-Token", "X-Service-Token", "OpenStack-API-Version"],
        help="Response headers that pages may read.",
    ),
    cfg.IntOpt("max_age", default=3600, help="Seconds for which a browser may cache a preflight answer."),
    cfg.ListOpt("allow_methods", default=["GET", "PUT", "POST", "DELETE", "PATCH"], help="Methods that pages may use."),
    cfg.ListOpt(
        "allow_headers",
        default=[*_HEADERS, *_IDENTITY_HEADERS, "OpenStack-API-Version"],
        help="Request headers that pages may send.",
    ),
)

_KINDS = {bool: cfg.BoolOpt, int: cfg.IntOpt, float: cfg.FloatOpt, str: cfg.StrOpt, tuple: cfg.ListOpt}


def _options_of(settings: Any) -> Iterator[cfg.Opt]:
    """Yield the options that the fields of a group are."""
    for field in dataclasses.fields(settings):
        kind: Any = get_args(field.type)[0] if isinstance(field.type, UnionType) else field.type
        default: Any = field.default
        yield _KINDS[get_origin(kind) or kind](
            field.name, default=list(default) if isinstance(default, tuple) else default, **field.metadata
        )


GROUPS: Mapping[str, tuple[str | None, type[Any]]] = {
    "logging": (None, LoggingSettings),
    "access_log": ("access_log", AccessLogSettings),
    "metrics": ("metrics", MetricsSettings),
    "headroom": ("headroom", HeadroomSettings),
    "database": ("placement_database", DatabaseSettings),
    "placement": ("placement", PlacementSettings),
    "ranking": ("ranking", RankingSettings),
    "planner_api": ("planner", PlannerApiSettings),
    "fairness": ("fair_share", FairnessSettings),
    "ui": ("ui", UiSettings),
    "journal": ("journal", JournalSettings),
}
"""By field of the settings: the group of options, and the class whose fields are the options; None is [DEFAULT]."""

OPTIONS: dict[str | None, Sequence[cfg.Opt]] = {
    **{group: [*_options_of(settings)] for group, settings in GROUPS.values()},
    "api": API,
    "http_basic": HTTP_BASIC,
    "oslo_middleware": OSLO_MIDDLEWARE,
    "cors": CORS,
    "profiler": PROFILER,
    "audit": AUDIT,
}
"""The options by group; None is ``[DEFAULT]``."""

NO_EFFECT: dict[str, Sequence[str]] = {
    "DEFAULT": (
        "tempdir",
        "pybasedir",
        "state_path",
        "log_color",
        "watch_log_file",
        "log_rotate_interval",
        "log_rotate_interval_type",
        "log_rotation_type",
        "max_logfile_count",
        "max_logfile_size_mb",
        "publish_errors",
        "instance_format",
        "instance_uuid_format",
        "rate_limit_interval",
        "rate_limit_burst",
        "rate_limit_except_level",
        "fatal_deprecations",
    ),
    "placement_database": ["connection_trace"],
    "workarounds": ["optimize_for_wide_provider_trees"],
}
"""Options of openstack-placement that occur in real files but have no effect here, by group."""


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the options by group, the entry point for ``oslo-config-generator``."""
    return [(group, list(options)) for group, options in OPTIONS.items()]
