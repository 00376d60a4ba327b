"""The options an operator can set, declared for oslo.config: names, types, defaults and what they do.

Names and defaults are those of openstack-placement; ``[http_basic]``, ``[ranking]``, ``[planner]``, ``[fair_share]``,
``[ui]`` and ``[journal]`` are this server's own. The sample configuration file is generated from ``list_opts``.
"""

from collections.abc import Sequence

from oslo_config import cfg

from placement.settings.options_logging import ACCESS_LOG, LOGGING, LOGGING_NO_EFFECT
from placement.settings.values import LARGEST_BODY, MISSING_CONSUMER_ID

API = (
    cfg.StrOpt(
        "auth_strategy",
        choices=(
            ("keystone", "tokens of the identity service, checked by keystonemiddleware"),
            ("http_basic", "user names and passwords from a file, see [http_basic]"),
            ("noauth2", "no check at all: for development only"),
        ),
        sample_default="keystone",
        deprecated_group="DEFAULT",
        help="How callers authenticate. Unset means keystone, except where nothing at all is configured (no "
        "configuration file, no OS_* environment variable): there it is noauth2, and only callers on the same machine "
        "are served.",
    ),
    cfg.IntOpt(
        "max_worker_memory_mb",
        default=0,
        min=0,
        help="A worker of gunicorn that holds more memory than this many MB after an answer takes no further requests, "
        "finishes those it has begun, and is replaced. 0: never. uWSGI has reload-on-rss.",
    ),
)

PLACEMENT_DATABASE = (
    cfg.StrOpt(
        "connection",
        default="",
        secret=True,
        help="URL of the database, for example postgresql://placement:PASSWORD@HOST/placement, mysql+pymysql://... or "
        "sqlite:////var/lib/placement/placement.sqlite. Required where anything is configured. "
        "Write a dollar sign twice.",
    ),
    cfg.StrOpt(
        "slave_connection",
        default="",
        secret=True,
        help="URL of a standby of this database, PostgreSQL or MariaDB. Allocation candidates, explanations and bulk "
        "reads are answered from it and may be slightly out of date; the primary answers while it cannot be reached, "
        "is more than 5 seconds behind, or has an older schema.",
    ),
    cfg.StrOpt("connection_parameters", default="", help="Text appended to the URL as its query: name=value&..."),
    cfg.BoolOpt("sqlite_synchronous", default=True, help="Whether SQLite waits until data is on the disk."),
    cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="sql_mode of MySQL and MariaDB sessions; empty: theirs."),
    cfg.IntOpt("connection_recycle_time", default=3600, help="Seconds after which a pooled connection is replaced."),
    cfg.IntOpt("max_pool_size", help="Connections that one process keeps open."),
    cfg.IntOpt("max_overflow", help="Connections that one process may open beyond max_pool_size."),
    cfg.IntOpt("pool_timeout", help="Seconds to wait for a free connection of the pool."),
    cfg.IntOpt("max_retries", default=10, help="Attempts to reach the database at start; -1: no limit."),
    cfg.IntOpt("retry_interval", default=10, help="Seconds between these attempts."),
    cfg.IntOpt("connection_debug", default=0, help="How much SQL is logged: 0 none, 50 statements, 100 also rows."),
    cfg.BoolOpt("sync_on_startup", default=False, help="Whether the server migrates the database when it starts."),
    cfg.BoolOpt(
        "plain_sqlalchemy",
        default=False,
        help="Send every statement to PostgreSQL through SQLAlchemy, instead of most of them straight to the driver. "
        "Slower; tells whether a fault is in the fast path, which also switches itself off where it cannot work.",
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
        help="The largest number of candidates that one request may find, whatever its limit; -1: no maximum.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        choices=(
            ("depth-first", "all candidates of one tree, then those of the next"),
            ("breadth-first", "one candidate of each tree, then the second of each, and so on"),
        ),
        help="In which order trees contribute candidates. It matters where a limit cuts the list. Unset means "
        "breadth-first where [ranking] is enabled, and depth-first where it is not.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=MISSING_CONSUMER_ID,
        help="The project of allocations from clients too old (microversion below 1.8) to name one.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=MISSING_CONSUMER_ID,
        help="The user of allocations from clients too old (microversion below 1.8) to name one.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        help="How often a write of allocations is retried after losing to a concurrent writer.",
    ),
)

RANKING = (
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether allocation candidates come best first, by the default profile of the planner file. Otherwise "
        "they come in a stable order without meaning.",
    ),
    cfg.FloatOpt(
        "near_equal",
        default=1.0,
        min=0,
        max=100,
        help="With [placement] randomize_allocation_candidates: provider trees whose scores (of 100) differ by no more "
        "than this change places at random, so that clients that ask at the same time do not all take the same one.",
    ),
    cfg.StrOpt(
        "planner_file",
        sample_default="planner.yaml",
        help="The planner file: profiles, levels and more, see the sample planner.yaml. A relative path is looked for "
        "in the directories of --config-dir and beside the configuration files. Unset means planner.yaml in these "
        "places, if there is one, and built-in defaults if not.",
    ),
)

PLANNER = (
    cfg.BoolOpt(
        "enabled", default=True, help="Whether the planner API below /planner/v1 is served; if not, it is 404."
    ),
    cfg.BoolOpt(
        "exclusive_for_all",
        default=True,
        help="Whether a place that a claim of the planner holds exclusively is closed to everybody: GET "
        "/allocation_candidates leaves it out, and PUT and POST /allocations of others into it are 409. The section "
        "exclusive of the planner file says what places have as a lock; where nothing has, this changes nothing.",
    ),
)

FAIR_SHARE = (
    cfg.StrOpt(
        "enforce",
        default="claims",
        choices=(
            ("claims", "only claims of the planner that ask for it"),
            ("plain", "besides, PUT and POST /allocations of consumers of the types below"),
        ),
        help="Who is refused what is not fair. What is fair is said in the section fair_share of the planner file, and "
        "explained in docs/fair-share.md. A plain client is refused, with 409, what a queue or project would hold "
        "beyond what it is entitled to, unless enough is left for all others; and what is beyond a limit. What gives "
        "back, or moves, is never refused.",
    ),
    cfg.ListOpt(
        "consumer_types",
        default=[],
        sample_default=["INSTANCE", "unknown"],
        help='With enforce = plain: the consumer types that are asked about, and that count. "unknown" are consumers '
        "without a type: nova names none.",
    ),
)

UI = (
    cfg.BoolOpt("enabled", default=True, help="Whether the console below /ui is served; if not, it is 404."),
    cfg.StrOpt("title", default="", help="What the console calls this cloud or region, on top of every page."),
    cfg.StrOpt(
        "colour",
        default="",
        sample_default="#b3261e",
        help="The colour of a stripe on top of every page of the console, such as #b3261e or the name of a colour, so "
        "that nobody takes one region for another.",
    ),
)

JOURNAL = (
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether every change of a provider or consumer is written into the journal, and GET /planner/v1/journal "
        "is served; if not, it is 404. The triggers that write it come and go with 'placement db upgrade'.",
    ),
    cfg.IntOpt(
        "keep_days",
        default=30,
        min=0,
        help="For how many days 'placement journal prune' leaves the journal; run it daily.",
    ),
    cfg.StrOpt(
        "cadf",
        help="Where 'placement journal cadf' writes what changes as CADF events: an absolute path is a file that gets "
        "one JSON document in each line, anything else the name of a logger.",
    ),
    cfg.IntOpt(
        "listeners",
        default=50,
        min=0,
        help="How many clients of each process may follow the journal as server-sent events at once; beyond that they "
        "are answered with 503. They hold a connection each, and no thread that serves requests.",
    ),
)

HTTP_BASIC = (
    cfg.StrOpt(
        "user_file",
        default="/etc/placement/htpasswd",
        help='File of users and bcrypt hashes, one "name:hash" a line, as "htpasswd -nB NAME" prints it. It is read '
        "again when it changes.",
    ),
    cfg.DictOpt(
        "user_roles",
        default={},
        help='The roles of users, for example "alice:admin, bob:reader+member". A user who is not named here has no '
        "role. The project of a user is the user's own name.",
    ),
)

OSLO_MIDDLEWARE = (
    cfg.BoolOpt(
        "enable_proxy_headers_parsing",
        default=False,
        help="Trust the X-Forwarded-* headers. Only behind a proxy that sets or removes every one of them.",
    ),
    cfg.IntOpt(
        "max_request_body_size",
        default=LARGEST_BODY,
        min=1,
        help="The largest request body, in bytes, that is read; a larger one is refused with 413.",
    ),
)

PROFILER = (
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Trace requests that carry a signed trace header, by OSprofiler. Its other options are read, too.",
    ),
    cfg.StrOpt("connection_string", default="messaging://", secret=True, help="Where OSprofiler sends its traces."),
    cfg.StrOpt("hmac_keys", default="SECRET_KEY", secret=True, help="Keys that trace headers are signed with."),
    cfg.BoolOpt(
        "trace_sqlalchemy",
        default=False,
        help="Trace SQL statements, too. On PostgreSQL all of them then go through SQLAlchemy, which takes longer.",
    ),
)

AUDIT = (
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Send a CADF event for each request, by the audit middleware of keystonemiddleware. "
        "[audit_middleware_notifications] says where to.",
    ),
    cfg.StrOpt(
        "audit_map_file",
        default="/etc/placement/api_audit_map.conf",
        help="What events call the things that paths lead to.",
    ),
    cfg.StrOpt("ignore_req_list", default="", help="Methods that leave no event, by commas, such as GET,HEAD."),
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
    cfg.IntOpt("max_age", default=3600, help="Seconds for which a browser may remember a preflight answer."),
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
        "placement:metrics:show allows. Needs the extra metrics.",
    ),
    cfg.StrOpt(
        "listen",
        help="HOST:PORT where the metrics are served to everybody, for example 127.0.0.1:9778. "
        "'placement serve' listens there; another server has to be told to (gunicorn --bind).",
    ),
    cfg.StrOpt(
        "directory",
        help="Where the processes of this server share their counts; best emptied when it starts. Unset: "
        "$PROMETHEUS_MULTIPROC_DIR, or one among the temporary files.",
    ),
    cfg.BoolOpt(
        "capacity",
        default=True,
        help="Include inventory and usage of every provider, named as in the OpenStack exporter.",
    ),
)

HEADROOM = (
    cfg.IntOpt(
        "seconds",
        default=60,
        min=1,
        help="The metrics tell how many more of each flavor of the planner file fit. They are counted in the "
        "background, when metrics are read and the last count is older than this.",
    ),
    cfg.BoolOpt("by_hypervisor", default=False, help="Also tell how many fit on each host."),
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
"""Options of openstack-placement that real files hold and that do nothing here, by group."""


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the options by group, as ``oslo-config-generator`` asks for them."""
    return [(group, list(options)) for group, options in OPTIONS.items()]
