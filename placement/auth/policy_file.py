"""Locating the policy file in force without reading its rules."""

from placement.settings import Settings
from placement.settings.loading import read


def policy_file(settings: Settings) -> str | None:
    """Return the path of the operator's policy file, or None if there is none."""
    # Large, so imported on use.
    from oslo_policy.policy import Enforcer  # noqa: PLC0415

    source = read(environ={}, search=False) if settings.source is None else settings.source
    path: str | None = source.find_file(Enforcer(source).policy_file)
    return path
