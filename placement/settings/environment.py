"""A source of option values from environment variables, for oslo.config."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_config.sources import _NoValue
from oslo_config.sources._environment import EnvironmentConfigurationSource


class Environment(EnvironmentConfigurationSource):
    """``OS_<GROUP>__<OPTION>`` variables from a given mapping.

    For a multi-valued option ([oslo_policy] policy_dirs) it returns a list with one value. The library's own source
    returns a plain string, whose characters are then taken as the values, so that ``/etc/...`` would name ``/``.
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
