"""``loadapp``, which openstack-placement promises to those who make its application from a configuration of theirs."""

from typing import TYPE_CHECKING, Any

from placement.app import create_app
from placement.settings.loading import settings_from

if TYPE_CHECKING:
    from flask import Flask


def loadapp(config: Any, project_name: str | None = None) -> "Flask":  # noqa: ARG001 - the signature is the promise
    """Return the application for an ``oslo_config.cfg.ConfigOpts`` that knows this server's options and was read."""
    return create_app(settings_from(config))
