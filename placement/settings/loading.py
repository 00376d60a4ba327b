"""Loading Settings from configuration files and environment variables, and the packages that some options need."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from oslo_config import cfg
from oslo_config.sources import _NoValue
from oslo_config.sources._environment import EnvironmentConfigurationSource
from platformdirs import user_data_path

from placement.errors import ConfigurationError
from placement.settings.options import GROUPS, NO_EFFECT, OPTIONS
from placement.settings.planner.sections import load_planner, planner_file
from placement.settings.values import MAX_BODY, DatabaseSettings, Settings

PROJECT = "placement"
PROGRAM = "placement-api"
CONFIG_DIR_VARIABLE = "OS_PLACEMENT_CONFIG_DIR"
CONFIG_FILE = "placement.conf"


def load(
    config_files: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    *,
    config_dirs: Sequence[str] = (),
    search: bool = True,
) -> Settings:
    """Return the settings in force.

    Args:
        config_files: those given with ``--config-file``, which replace all default locations.
        environ: the environment variables, by default those of the process.
        config_dirs: the directories given with ``--config-dir``.
        search: whether to search the usual locations (``/etc/placement`` and oslo.config's others).

    Raises:
        ConfigurationError: a file is unreadable, a value is invalid, or no database is configured.
    """
    environ = os.environ if environ is None else environ
    source = read(config_files, environ, config_dirs=config_dirs, search=search)
    variables = sorted(name for name in environ if name.startswith("OS_"))
    files = [*source.config_file, *source.config_dir, *variables]
    try:
        settings = _settings(source, configured=bool(files))
    except (cfg.Error, ValueError) as error:
        raise ConfigurationError(_sentence(error)) from error
    if files and not settings.database.connection:
        raise ConfigurationError(
            f"[placement_database] connection is not set (configuration found: {', '.join(files)})."
        )
    return settings


def read(
    config_files: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    *,
    config_dirs: Sequence[str] = (),
    search: bool = True,
) -> cfg.ConfigOpts:
    """Return the parsed oslo.config object; the arguments are those of ``load``."""
    environ = os.environ if environ is None else environ
    source = cfg.ConfigOpts()
    source._env_driver = Environment(environ)  # no public API sets the source
    register_options(source)
    arguments = [f"--config-file={path}" for path in config_files] + [f"--config-dir={path}" for path in config_dirs]
    try:
        source(
            arguments,
            project=PROJECT if search else None,
            prog=PROGRAM,
            default_config_files=_default_files(environ, search=search),
            default_config_dirs=None if search else [],
        )
    except cfg.Error as error:
        raise ConfigurationError(_sentence(error)) from error
    return source


def register_options(source: cfg.ConfigOpts) -> None:
    """Register this server's options on a configuration object created elsewhere."""
    for group, options in OPTIONS.items():
        source.register_opts(options, group=group)
    for group, names in NO_EFFECT.items():
        source.register_opts(
            [cfg.StrOpt(name, secret=True) for name in names], group=None if group == "DEFAULT" else group
        )


def settings_from(source: cfg.ConfigOpts) -> Settings:
    """Return the settings in an already loaded configuration object."""
    return _settings(source, configured=True)


def _default_files(environ: Mapping[str, str], *, search: bool) -> list[str] | None:
    """Return the files to read if none was named; None leaves the search to oslo.config."""
    directory = environ.get(CONFIG_DIR_VARIABLE, "").strip()
    if directory:
        return [str(Path(directory) / CONFIG_FILE)]
    return None if search else []


def _settings(source: cfg.ConfigOpts, *, configured: bool) -> Settings:
    for group, options in OPTIONS.items():  # so that an invalid one is reported here, even if only a library reads it
        for option in options:
            getattr(source if group is None else source[group], option.dest)
    basic = source.http_basic
    groups = {
        name: _group(settings, source if group is None else source[group]) for name, (group, settings) in GROUPS.items()
    }
    return Settings(
        **groups,
        planner=load_planner(planner_file(source)),
        auth_strategy=source.api.auth_strategy or ("keystone" if configured else "noauth2"),
        auth_is_implicit=not configured,
        http_basic_file=basic.user_file,
        http_basic_user_roles=MappingProxyType({user: _roles(user, text) for user, text in basic.user_roles.items()}),
        max_worker_memory_mb=source.api.max_worker_memory_mb or 0,
        proxy_headers_parsing=source.oslo_middleware.enable_proxy_headers_parsing,
        max_request_body_size=source.oslo_middleware.max_request_body_size or MAX_BODY,
        ignored_options=_ignored(source),
        source=source,
    )


def _group(settings: type[Any], source: Any) -> Any:
    """Return a group's settings, whose fields are named like its options."""
    values = ((field.name, getattr(source, field.name)) for field in dataclasses.fields(settings))
    # An empty number is None, so it has the field's default, like an option that is not set.
    return settings(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values if value is not None}
    )


def _roles(user: str, text: str) -> tuple[str, ...]:
    if re.search("[:;]", text):
        raise ConfigurationError(
            f"[http_basic] user_roles: {text!r} of {user!r} is not a list of roles. "
            'Write "alice:admin, bob:reader+member".'
        )
    return tuple(role.strip() for role in text.split("+") if role.strip())


def _ignored(source: cfg.ConfigOpts) -> tuple[str, ...]:
    def is_set(group: str, name: str) -> bool:
        location = source.get_location(name, None if group == "DEFAULT" else group)
        return location is not None and location.location.is_user_controlled

    return tuple(f"[{group}] {name}" for group, names in NO_EFFECT.items() for name in names if is_set(group, name))


def _sentence(error: Exception) -> str:
    """Return the message in one line: oslo.config's messages may have several."""
    return "The configuration cannot be used: " + " ".join(str(error).split())


class Environment(EnvironmentConfigurationSource):
    """``OS_<GROUP>__<OPTION>`` variables from a given mapping.

    A multi-valued option gets a list with one value. The library's own source returns a plain string, whose characters
    are then taken as the values, so that ``/etc/...`` would name ``/``.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, group_name: str | None, option_name: str, opt: cfg.Opt) -> tuple[Any, cfg.LocationInfo | None]:
        """Return the value and its location, in the form that oslo.config expects."""
        variable = self.get_name(group_name, option_name)
        if variable not in self._environ:
            return _NoValue, None
        value = self._environ[variable]
        return [value] if opt.multi else value, cfg.LocationInfo(cfg.Locations.environment, variable)


def with_own_database(settings: Settings) -> Settings:
    """Return the settings, with a SQLite file in the user's data directory if nothing at all is configured."""
    if settings.database.connection:
        return settings
    file = user_data_path("placement", ensure_exists=True) / "placement.sqlite"
    return replace(settings, database=DatabaseSettings(connection=f"sqlite:///{file}", sync_on_startup=True))


def module_for(option: str, module: str, *, package: str, extra: str) -> Any:
    """Import a module that an option needs of a package that an extra installs, or raise a ConfigurationError."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"{option} needs {package}, which is not installed: pip install 'placement-server[{extra}]'."
        ) from error
