"""The logging options: ``[DEFAULT]``, with oslo.log's names and meanings, and ``[access_log]``."""

from oslo_config import cfg

from placement.settings.values import LoggingSettings

_DEFAULTS = LoggingSettings()

LOGGING = (
    cfg.BoolOpt("debug", default=False, help="Log debug messages too."),
    cfg.BoolOpt("log_options", default=True, help="With debug: log the value of every option at start."),
    cfg.StrOpt(
        "log_config_append",
        deprecated_name="log_config",
        help="A file in the format of Python's logging.config. It replaces all other logging options here.",
    ),
    cfg.StrOpt("log_date_format", default=_DEFAULTS.log_date_format, help="Format of %(asctime)s."),
    cfg.StrOpt("log_file", deprecated_name="logfile", help="File to log to. It may be rotated while in use."),
    cfg.StrOpt(
        "log_dir",
        deprecated_name="logdir",
        help="Directory of log_file; without log_file, the directory of placement.log.",
    ),
    cfg.BoolOpt(
        "use_stderr",
        default=False,
        help="Log to standard error too. This is the default if nothing else is configured.",
    ),
    cfg.BoolOpt("use_syslog", default=False, help="Log to syslog too."),
    cfg.StrOpt("syslog_log_facility", default=_DEFAULTS.syslog_log_facility, help="The syslog facility."),
    cfg.BoolOpt(
        "use_journal",
        default=False,
        help="Log to systemd's journal too. Requires the Python package systemd-python; without it, the log goes to "
        "standard error.",
    ),
    cfg.BoolOpt(
        "use_json",
        default=_DEFAULTS.use_json,
        help="Log one JSON object per message; the format strings below are then ignored.",
    ),
    cfg.StrOpt(
        "logging_context_format_string",
        default=_DEFAULTS.logging_context_format_string,
        help="Format of messages that belong to a request.",
    ),
    cfg.StrOpt(
        "logging_default_format_string",
        default=_DEFAULTS.logging_default_format_string,
        help="Format of all other messages.",
    ),
    cfg.StrOpt(
        "logging_debug_format_suffix",
        default=_DEFAULTS.logging_debug_format_suffix,
        help="Suffix of debug messages.",
    ),
    cfg.StrOpt(
        "logging_exception_prefix",
        default=_DEFAULTS.logging_exception_prefix,
        help="Prefix of each line of a traceback.",
    ),
    cfg.StrOpt(
        "logging_user_identity_format",
        default=_DEFAULTS.logging_user_identity_format,
        help="Format of %(user_identity)s.",
    ),
    cfg.ListOpt(
        "default_log_levels",
        default=list(_DEFAULTS.default_log_levels),
        help="Levels of individual loggers, as logger=LEVEL.",
    ),
)

ACCESS_LOG = (
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Log each request: caller, method and path, status, size, microversion, seconds and number of SQL "
        "statements. The logger is placement.access; successful health checks are logged at DEBUG.",
    ),
)

LOGGING_NO_EFFECT = (
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
)
