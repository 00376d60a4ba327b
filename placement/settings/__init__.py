"""Configuration: everything an operator can say, as one frozen value. The rest of the server sees no oslo.config."""

from placement.errors import ConfigurationError
from placement.settings.loading import load
from placement.settings.own_database import with_own_database
from placement.settings.values import (
    MISSING_CONSUMER_ID,
    DatabaseSettings,
    LoggingSettings,
    PlacementSettings,
    Settings,
)

__all__ = [
    "MISSING_CONSUMER_ID",
    "ConfigurationError",
    "DatabaseSettings",
    "LoggingSettings",
    "PlacementSettings",
    "Settings",
    "load",
    "with_own_database",
]
