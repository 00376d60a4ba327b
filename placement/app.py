"""The composition root, the only module that knows all others: ``create_app(settings)`` builds the application."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from flask import Flask

from placement.advisories import warn_of_old_libraries
from placement.api.call import Server
from placement.api.candidate_query import ranking_in_force, search_options
from placement.api.middleware import BehindProxy, wrap_with_cors
from placement.api.planner.headroom import requests_of_flavors
from placement.api.planner.journal_feed import Listeners
from placement.api.routes import PLAIN_ROUTES, ROUTES
from placement.api.routing import MountedFlask, install
from placement.auth import AuthStrategy, strategy_from
from placement.auth.policy import Policy
from placement.domain.search_plan import LIMITS, CandidateRequest, SearchLimits
from placement.errors import ConfigurationError, InvalidAt
from placement.policies import operations
from placement.services.bulk_read import StandingAudit
from placement.services.cloud_cache import cloud_check, load
from placement.services.fair_share.gate import PlainGate
from placement.services.fair_share.shares import UsageCache
from placement.services.fragmentation import judges_of
from placement.services.health import Readiness
from placement.services.journal import JournalPruner
from placement.settings import Settings
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database
from placement.store.lifecycle.opening import open_database
from placement.telemetry.middleware import audited, meters_for, traced, traces_statements, watched
from placement.tuning import ReplacedWhenLarge
from placement.ui.blueprint import install_console
from placement.ui.security import Visitors

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


def create_app(settings: Settings, *, limits: SearchLimits = LIMITS, database: Database | None = None) -> Flask:
    """Create the WSGI application for a configuration.

    Args:
        settings: the configuration.
        limits: bounds of each of its searches.
        database: what to serve as it is, instead of what is configured.

    Raises:
        ConfigurationError: the server cannot start; the message is one sentence saying why.
    """
    warn_of_old_libraries()
    strategy = strategy_from(settings)
    server = _server(settings, limits, database or _database(settings))
    app = MountedFlask("placement", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_request_body_size
    app.extensions["placement"] = server
    routes = ROUTES if settings.planner_api.enabled else PLAIN_ROUTES
    visitors = Visitors(strategy, settings) if settings.ui.enabled else strategy
    install(app, server, routes, identify=strategy.identify, identify_visitor=visitors.identify)
    if settings.ui.enabled:
        install_console(app, server)
    app.wsgi_app = _wrapped(app.wsgi_app, strategy, server)  # type: ignore[method-assign, assignment]
    return app


def _server(settings: Settings, limits: SearchLimits, database: Database) -> Server:
    """Return what all requests share."""
    policy = Policy(settings, operations())
    policy.prepare()
    judges, audit = judges_of(settings.planner.profiles), StandingAudit(database)
    ranking = ranking_in_force(settings)
    load(database)
    meters = meters_for(database, settings, _flavors(settings))
    return Server(
        database=database,
        policy=policy,
        settings=settings,
        usage_cache=UsageCache(settings.planner.fair_share),
        fragmentation_judges=judges,
        audit=audit,
        listeners=Listeners(database, settings.journal.listeners, on_change=meters.listening),
        readiness=Readiness(database),
        background=(
            *_background(database, settings, audit),
            *[judge.refreshing(database) for judge in judges.values()],
        ),
        plain_gate=_plain_gate(settings),
        locks=settings.locks_for_all,
        search=search_options(settings, limits),
        ranking=ranking,
        judge=judges.get(ranking.profile.name) if ranking else None,
        meters=meters,
    )


def _background(database: Database, settings: Settings, audit: StandingAudit) -> Iterator[BackgroundWork]:
    yield cloud_check(database)
    if keep_days := settings.journal.keep_days:
        yield JournalPruner(database, keep_days).work
    if settings.ui.enabled:
        yield audit.work


def _database(settings: Settings) -> Database:
    # Statements sent past SQLAlchemy are invisible to its event listeners, and tracing is one of them.
    plain = settings.database.plain_sqlalchemy or traces_statements(settings)
    return open_database(
        replace(settings.database, plain_sqlalchemy=plain),
        retries=settings.placement.allocation_conflict_retry_count,
        keep_journal=settings.journal.enabled,
    )


def _plain_gate(settings: Settings) -> PlainGate | None:
    """Return the fair-share gate for plain allocations, if the operator enforces it there."""
    fairness = settings.fairness
    return PlainGate(settings.planner.fair_share, fairness.consumer_types) if fairness.enforce == "plain" else None


def _flavors(settings: Settings) -> Mapping[str, CandidateRequest]:
    """Return what each flavor of the planner file requests."""
    try:
        return requests_of_flavors(settings.planner.flavors)
    except InvalidAt as wrong:
        raise ConfigurationError(
            f"The planner file has a flavor that is not a valid request: {wrong.message}"
        ) from wrong


def _wrapped(application: "WSGIApplication", strategy: AuthStrategy, server: Server) -> "WSGIApplication":
    """Wrap the application in its middleware, outermost last."""
    settings = server.settings
    application = wrap_with_cors(strategy.wrap(audited(application, settings)), settings)
    if settings.proxy_headers_parsing:
        application = BehindProxy(application)
    application = traced(application, server.database, settings)
    application = watched(application, server.database, meters=server.meters, settings=settings)
    if settings.max_worker_memory_mb:
        application = ReplacedWhenLarge(application, settings.max_worker_memory_mb)
    return application
