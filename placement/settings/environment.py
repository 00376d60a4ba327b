"""The source of option values from environment variables, for oslo.config."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_config.sources import _NoValue
from oslo_config.sources._environment import EnvironmentConfigurationSource


class Environment(EnvironmentConfigurationSource):
    """``OS_<GROUP>__<OPTION>`` variables of a given mapping.

    Unlike the library's own source it gives an option that may have several values ([oslo_policy] policy_dirs) one
    value; the library takes the single characters for the values, so that ``/etc/...`` names the directory ``/``.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, group_name: str | None, option_name: str, opt: cfg.Opt) -> tuple[Any, cfg.LocationInfo | None]:
        """Return the value and where it stands, in the form oslo.config asks of a source."""
        variable = self.get_name(group_name, option_name)
        if variable not in self._environ:
            return _NoValue, None
        value = self._environ[variable]
        return [value] if opt.multi else value, cfg.LocationInfo(cfg.Locations.environment, variable)
