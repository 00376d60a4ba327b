"""A source of option values for oslo.config: a mapping in the place of the process's environment variables."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_config.sources import _NoValue
from oslo_config.sources._environment import EnvironmentConfigurationSource


class MappedEnvironment(EnvironmentConfigurationSource):
    """``OS_<GROUP>__<OPTION>`` variables of a given mapping, so that nothing depends on ``os.environ``."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, group_name: str | None, option_name: str, opt: cfg.Opt) -> tuple[Any, cfg.LocationInfo | None]:  # noqa: ARG002 - the signature is oslo.config's
        """Return the value and where it stands, in the form oslo.config asks of a source."""
        variable = self.get_name(group_name, option_name)
        if variable not in self._environ:
            return _NoValue, None
        return self._environ[variable], cfg.LocationInfo(cfg.Locations.environment, variable)
