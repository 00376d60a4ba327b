"""The observers of a server: created from the settings and wrapped around its application."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from placement.candidates.headroom.plans import CountedRequest
from placement.services.cloud_cache import CloudCache
from placement.settings import Settings
from placement.settings.extras import module_for
from placement.store.connection.database import Database
from placement.store.connection.statements import count_statements
from placement.telemetry.access_log import log_access
from placement.telemetry.flavor_headroom import FlavorHeadroom
from placement.telemetry.meters import Meters, NoMeters
from placement.telemetry.own_listener import OwnListener
from placement.telemetry.record import Observed, Observer

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from placement.telemetry.metrics import Metrics


def meters_for(
    database: Database, settings: Settings, flavors: Mapping[str, CountedRequest], cache: CloudCache
) -> Meters:
    """Return the meters that the settings ask for; they also report the headroom of ``flavors``.

    Raises:
        ConfigurationError: the extra is not installed, or the directory is unusable.
    """
    if not settings.metrics.enabled:
        return NoMeters()
    module = module_for(
        "[metrics] enabled", "placement.telemetry.metrics", package="prometheus-client", extra="metrics"
    )
    locks, planner = settings.locks_for_all, settings.planner
    headroom = FlavorHeadroom(database, flavors, settings.headroom, planner=planner, locks=locks, cache=cache)
    return cast("Meters", module.Metrics(database, settings.metrics, headroom))


def watched(
    application: "WSGIApplication", database: Database, *, meters: Meters, settings: Settings
) -> "WSGIApplication":
    """Wrap the application in all that observes its requests."""
    observers: list[Observer] = [log_access] if settings.access_log.enabled else []
    when_begun: list[Observer] = []
    if settings.metrics.enabled:
        observers.append(cast("Observer", meters))
        when_begun.append(cast("Metrics", meters).begun)
    if observers:
        for engine in database.engines:
            count_statements(engine)
        application = Observed(application, observers, when_begun=when_begun)
    if settings.metrics.enabled and settings.metrics.address is not None:
        application = OwnListener(application, meters, settings.metrics.address[1])
    return application
