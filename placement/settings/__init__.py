"""Configuration: all that an operator can set, as one frozen value. The rest of the server does not use oslo.config."""

from placement.errors import ConfigurationError
from placement.settings.loading import load, with_own_database
from placement.settings.planner import PlannerSettings
from placement.settings.values import (
    MISSING_CONSUMER_ID,
    AccessLogSettings,
    DatabaseSettings,
    HeadroomSettings,
    JournalSettings,
    LoggingSettings,
    MetricsSettings,
    PlacementSettings,
    PlannerApiSettings,
    RankingSettings,
    Settings,
    UiSettings,
)

__all__ = [
    "MISSING_CONSUMER_ID",
    "AccessLogSettings",
    "ConfigurationError",
    "DatabaseSettings",
    "HeadroomSettings",
    "JournalSettings",
    "LoggingSettings",
    "MetricsSettings",
    "PlacementSettings",
    "PlannerApiSettings",
    "PlannerSettings",
    "RankingSettings",
    "Settings",
    "UiSettings",
    "load",
    "with_own_database",
]
