"""The interface of authentication strategies, and the choice of the configured one."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from placement.auth.noauth2 import NoAuth
from placement.domain.identity import Identity
from placement.errors import ConfigurationError
from placement.settings import Settings

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment

LOG = logging.getLogger(__name__)


class AuthStrategy(Protocol):
    """A way to find out who is calling."""

    def wrap(self, wsgi_app: "WSGIApplication") -> "WSGIApplication":
        """Wrap the application in the middleware that the strategy needs."""

    def identify(self, environ: "WSGIEnvironment") -> Identity | None:
        """Return the caller, or None if the request does not identify or authenticate one."""


def strategy_from(settings: Settings) -> AuthStrategy:
    """Return the configured strategy, importing what it needs only now.

    Raises:
        ConfigurationError: the strategy is unknown, its extra is not installed, or its file cannot be read.
    """
    name = settings.auth_strategy
    if name == "noauth2":
        if not settings.auth_is_implicit:
            LOG.warning("[api] auth_strategy is noauth2: anyone who can reach this server has administrator rights.")
        return NoAuth(local_only=settings.auth_is_implicit)
    if name == "http_basic":
        return cast("AuthStrategy", import_module("placement.auth.http_basic").HttpBasic.from_settings(settings))
    if name == "keystone":
        return _keystone(settings)
    raise ConfigurationError(f"[api] auth_strategy is {name!r}; it must be keystone, http_basic or noauth2.")


def _keystone(settings: Settings) -> AuthStrategy:
    try:
        module = import_module("placement.auth.keystone")
    except ImportError as error:
        raise ConfigurationError(
            "[api] auth_strategy is keystone (the default wherever anything is configured), and keystonemiddleware is "
            "not installed: pip install 'placement-server[keystone]', or choose another auth_strategy."
        ) from error
    return cast("AuthStrategy", module.Keystone(settings))
