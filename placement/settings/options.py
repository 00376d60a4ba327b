"""The options an operator can set, declared for oslo.config: names, types, defaults and help.

Names and defaults are openstack-placement's, except in the groups that are this server's own: ``[access_log]``,
``[fair_share]``, ``[headroom]``, ``[http_basic]``, ``[journal]``, ``[metrics]``, ``[planner]``, ``[ranking]`` and
``[ui]``. The sample configuration file is generated from ``list_opts``.
"""

from collections.abc import Sequence

from oslo_config import cfg

from placement.settings.options_logging import ACCESS_LOG, LOGGING, LOGGING_NO_EFFECT
from placement.settings.values import MAX_BODY, MISSING_CONSUMER_ID

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

PLACEMENT_DATABASE = (
    cfg.StrOpt(
        "connection",
        default="",
        secret=True,
        help="URL of the database, for example postgresql://placement:PASSWORD@HOST/placement, mysql+pymysql://... or "
        "sqlite:////var/lib/placement/placement.sqlite. Required if anything is configured. Write a dollar sign twice.",
    ),
    cfg.StrOpt(
        "slave_connection",
        default="",
        secret=True,
        help="URL of a standby of this database, PostgreSQL or MariaDB. It serves allocation candidates, explanations "
        "and bulk reads, which may be slightly out of date. The primary serves them while the standby cannot be "
        "reached, is more than 5 seconds behind, or has an older schema.",
    ),
    cfg.StrOpt("connection_parameters", default="", help="Query string appended to the URL: name=value&..."),
    cfg.BoolOpt("sqlite_synchronous", default=True, help="Whether SQLite waits until data is on disk."),
    cfg.StrOpt(
        "mysql_sql_mode",
        default="TRADITIONAL",
        help="sql_mode of MySQL and MariaDB sessions; empty: the server's default.",
    ),
    cfg.IntOpt("connection_recycle_time", default=3600, help="Seconds after which a pooled connection is replaced."),
    cfg.IntOpt("max_pool_size", help="Number of connections that each process keeps open."),
    cfg.IntOpt("max_overflow", help="Number of connections that each process may open beyond max_pool_size."),
    cfg.IntOpt("pool_timeout", help="Seconds to wait for a free connection from the pool."),
    cfg.IntOpt(
        "connect_timeout",
        default=5,
        min=2,
        help="Seconds to wait for a new connection to PostgreSQL or MariaDB, unless the URL says otherwise.",
    ),
    cfg.IntOpt(
        "statement_timeout",
        default=30,
        min=0,
        help="Seconds that a request waits for the answer to one statement. If the database, a proxy or a firewall is "
        "silent for that long, the connection is closed and the request answered with 503. 0: no limit.",
    ),
    cfg.IntOpt("max_retries", default=10, help="Attempts to reach the database at start; -1: unlimited."),
    cfg.IntOpt("retry_interval", default=10, help="Seconds between these attempts."),
    cfg.IntOpt("connection_debug", default=0, help="How much SQL is logged: 0 none, 50 statements, 100 also rows."),
    cfg.BoolOpt("sync_on_startup", default=False, help="Whether the server migrates the database when it starts."),
    cfg.BoolOpt(
        "plain_sqlalchemy",
        default=False,
        help="Send every statement to PostgreSQL through SQLAlchemy, instead of sending most of them straight to the "
        "driver. Slower. Use it to find out whether the fast path causes a problem; the fast path also switches "
        "itself off where it cannot work.",
    ),
)

PLACEMENT = (
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Shuffle allocation candidates, so that clients that take the first one spread over the providers.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        help="Maximum number of candidates that one request may find, whatever its limit; -1: no maximum.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        choices=(
            ("depth-first", "all candidates of one tree, then those of the next"),
            ("breadth-first", "one candidate of each tree, then the second of each, and so on"),
        ),
        help="The order in which trees contribute candidates. It matters when a limit cuts the list. If unset, "
        "breadth-first if [ranking] is enabled, otherwise depth-first.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=MISSING_CONSUMER_ID,
        help="Project of allocations by clients too old (microversion below 1.8) to name one.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=MISSING_CONSUMER_ID,
        help="User of allocations by clients too old (microversion below 1.8) to name one.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        help="How often to retry a write of allocations that lost to a concurrent writer.",
    ),
)

RANKING = (
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether allocation candidates come best first, by the default profile of the planner file. Otherwise "
        "their order is stable but has no meaning.",
    ),
    cfg.FloatOpt(
        "near_equal",
        default=1.0,
        min=0,
        max=100,
        help="With [placement] randomize_allocation_candidates: provider trees whose scores (0 to 100) differ by no "
        "more than this change places at random, so that clients that ask at the same time do not all take the same "
        "one.",
    ),
    cfg.StrOpt(
        "planner_file",
        sample_default="planner.yaml",
        help="The planner file: profiles, levels and more, see the sample planner.yaml. A relative path is searched "
        "for in the directories of --config-dir and next to the configuration files. If unset, planner.yaml in these "
        "places is used if it exists, otherwise built-in defaults.",
    ),
)

PLANNER = (
    cfg.BoolOpt(
        "enabled", default=True, help="Whether to serve the planner API below /planner/v1; otherwise it is 404."
    ),
    cfg.BoolOpt(
        "exclusive_for_all",
        default=True,
        help="Whether a place that a claim of the planner holds exclusively is closed to everybody: GET "
        "/allocation_candidates leaves it out, and PUT and POST /allocations of others into it are 409. The section "
        "exclusive of the planner file names the locks of places; without locks, this has no effect.",
    ),
)

FAIR_SHARE = (
    cfg.StrOpt(
        "enforce",
        default="claims",
        choices=(
            ("claims", "only claims of the planner that ask for it"),
            ("plain", "also PUT and POST /allocations for consumers of the types below"),
        ),
        help="Whose requests are refused if they are not fair. The section fair_share of the planner file defines fair "
        "shares, and docs/fair-share.md explains them. A plain client gets 409 if the request would take a queue or "
        "project beyond its entitlement without leaving enough for all others, or beyond a limit. Giving back "
        "resources or moving them is never refused.",
    ),
    cfg.ListOpt(
        "consumer_types",
        default=[],
        sample_default=["INSTANCE", "unknown"],
        help='With enforce = plain: the consumer types that are checked, and whose usage counts. "unknown" means '
        "consumers without a type; nova sets none.",
    ),
)

UI = (
    cfg.BoolOpt("enabled", default=True, help="Whether to serve the console below /ui; otherwise it is 404."),
    cfg.StrOpt(
        "title", default="", help="Name of this cloud or region, shown at the top of every page of the console."
    ),
    cfg.StrOpt(
        "colour",
        default="",
        sample_default="#b3261e",
        help="Colour of a stripe at the top of every page of the console, such as #b3261e or the name of a colour, so "
        "that nobody mistakes one region for another.",
    ),
)

JOURNAL = (
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether to write every change of a provider or consumer to the journal and serve GET "
        "/planner/v1/journal; otherwise it is 404. 'placement db upgrade' creates or removes the triggers that write "
        "it.",
    ),
    cfg.IntOpt(
        "keep_days",
        default=90,
        min=0,
        help="Number of days for which the server keeps the journal: it deletes older rows in the background, a "
        "thousand at a time. 0: it deletes none.",
    ),
    cfg.StrOpt(
        "cadf",
        help="Where 'placement journal cadf' writes changes as CADF events: an absolute path is a file that gets one "
        "JSON document per line, anything else is the name of a logger.",
    ),
    cfg.IntOpt(
        "listeners",
        default=50,
        min=0,
        help="How many clients of each process may follow the journal as server-sent events at the same time; further "
        "ones get 503. Each holds a connection, but no thread that serves requests.",
    ),
)

HTTP_BASIC = (
    cfg.StrOpt(
        "user_file",
        default="/etc/placement/htpasswd",
        help='File of users and bcrypt hashes, one "name:hash" per line, as "htpasswd -nB NAME" prints it. It is '
        "reread when it changes.",
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
        help="Trust the X-Forwarded-* headers. Set it only behind a proxy that sets or removes every one of them.",
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
        help="Trace requests that carry a signed trace header, with OSprofiler. Its other options are read, too.",
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

CORS = (
    cfg.ListOpt(
        "allowed_origin",
        help='Web origins whose pages may call this API, for example "https://horizon.example.com"; unset: none.',
    ),
    cfg.BoolOpt("allow_credentials", default=True, help="Whether such calls may carry credentials."),
    cfg.ListOpt(
        "expose_headers",
        default=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Subject-Token",
            "X-Service-Token",
            "OpenStack-API-Version",
        ],
        help="Response headers that pages may read.",
    ),
    cfg.IntOpt("max_age", default=3600, help="Seconds for which a browser may cache a preflight answer."),
    cfg.ListOpt("allow_methods", default=["GET", "PUT", "POST", "DELETE", "PATCH"], help="Methods that pages may use."),
    cfg.ListOpt(
        "allow_headers",
        default=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Identity-Status",
            "X-Roles",
            "X-Service-Catalog",
            "X-User-Id",
            "X-Tenant-Id",
            "OpenStack-API-Version",
        ],
        help="Request headers that pages may send.",
    ),
)

METRICS = (
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Collect metrics for Prometheus and serve them at /metrics, to callers that the policy rule "
        "placement:metrics:show allows. Requires the extra metrics.",
    ),
    cfg.StrOpt(
        "listen",
        help="HOST:PORT where metrics are served to everybody, for example 127.0.0.1:9778. 'placement serve' listens "
        "there; other servers must be told to (gunicorn --bind).",
    ),
    cfg.StrOpt(
        "directory",
        help="Directory in which the processes of this server share their counts; it should be emptied at start. If "
        "unset, $PROMETHEUS_MULTIPROC_DIR, or one below systemd's $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /tmp.",
    ),
    cfg.BoolOpt(
        "capacity",
        default=True,
        help="Include inventory and usage of every provider, with the names that the OpenStack exporter uses.",
    ),
    cfg.BoolOpt(
        "allocations",
        default=False,
        help="Include what every consumer holds, with the name that the OpenStack exporter uses: one series for each "
        "consumer, provider and resource class.",
    ),
)

HEADROOM = (
    cfg.IntOpt(
        "seconds",
        default=60,
        min=1,
        help="The metrics show how many more of each flavor of the planner file fit. When metrics are read and the "
        "last count is older than this, they are counted again in the background.",
    ),
    cfg.BoolOpt("by_hypervisor", default=False, help="Also count how many fit on each host."),
)

OPTIONS: dict[str | None, Sequence[cfg.Opt]] = {
    None: LOGGING,
    "access_log": ACCESS_LOG,
    "metrics": METRICS,
    "headroom": HEADROOM,
    "api": API,
    "placement_database": PLACEMENT_DATABASE,
    "placement": PLACEMENT,
    "ranking": RANKING,
    "planner": PLANNER,
    "fair_share": FAIR_SHARE,
    "ui": UI,
    "journal": JOURNAL,
    "http_basic": HTTP_BASIC,
    "oslo_middleware": OSLO_MIDDLEWARE,
    "cors": CORS,
    "profiler": PROFILER,
    "audit": AUDIT,
}
"""The options by group; None is ``[DEFAULT]``."""

NO_EFFECT: dict[str, tuple[str, ...]] = {
    "DEFAULT": ("tempdir", "pybasedir", "state_path", *LOGGING_NO_EFFECT),
    "placement_database": ("connection_trace",),
    "workarounds": ("optimize_for_wide_provider_trees",),
}
"""Options of openstack-placement that occur in real files but have no effect here, by group."""


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the options by group, the entry point for ``oslo-config-generator``."""
    return [(group, list(options)) for group, options in OPTIONS.items()]
