"""``loadapp``, openstack-placement's entry point for deployments that build the application themselves."""

from typing import TYPE_CHECKING, Any

from placement.app import create_app
from placement.settings.loading import settings_from

if TYPE_CHECKING:
    from flask import Flask


def loadapp(config: Any, project_name: str | None = None) -> "Flask":  # noqa: ARG001 - the signature is the promise
    """Return the application for a loaded ``oslo_config.cfg.ConfigOpts`` that has this server's options registered."""
    return create_app(settings_from(config))
