"""Map addresses and the questions they ask: everything that a map shows can be reconstructed from its address."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from flask import Request, url_for

from placement.api.call import Call
from placement.api.planner.headroom import request_of_text
from placement.api.planner.journal import RULE as JOURNAL
from placement.api.planner.journal import keeps_journal
from placement.api.planner.journal_feed import moment_of
from placement.candidates.ranking import Ranking
from placement.domain.search_plan import CandidateRequest
from placement.errors import Invalid
from placement.formats.pasting import pasted
from placement.services.allocation_candidates import CandidateQuestion
from placement.services.console.cloud_map import MapQuestion
from placement.ui.page import page_number

HEADROOM = "placement:planner:headroom"
CONSUMERS = "placement:allocations:list"

BEST = 100
"""The number of hosts in a profile's ranking."""

HOURS = (0, 1, 3, 6, 12, 24)
"""How far back links and slider go. An address may go back further, as far as changes can be added up."""

STEP = timedelta(minutes=15)
TIME = "%Y-%m-%dT%H:%M"


PARAMETERS = {
    "query": "query",
    "class": "class_name",
    "project": "project",
    "group": "group",
    "host": "host",
    "at": "at",
    "only": "only",
}
"""Parameters that occur once -> the field of MapAddress."""


@dataclass(frozen=True, slots=True)
class MapAddress:
    """The query string of a map by parameter; absent parameters are empty.

    Args:
        query: a flavor's name, or pasted text such as a query string or a log line.
        group: the name of the opened group.
        host: the beginning of the selected host's uuid.
        at: a time in the past.
        only: if set, hosts that have nothing of the class are left out.
        profiles: two profiles whose orders are compared.
    """

    query: str = ""
    class_name: str = ""
    project: str = ""
    group: str = ""
    host: str = ""
    at: str = ""
    only: str = ""
    profiles: tuple[str, ...] = ()
    page: int = 1

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the parameters that are set."""
        yield from [(parameter, value) for parameter, name in PARAMETERS.items() if (value := getattr(self, name))]
        yield from [("profile", name) for name in self.profiles]
        if self.page > 1:
            yield "page", str(self.page)

    def url(self, **changed: Any) -> str:
        """Return the link to the same map with some parameters changed."""
        query = urlencode([*replace(self, **changed).pairs()], safe=":,")
        return url_for("ui.map") + (f"?{query}" if query else "")


def address_of(request: Request) -> MapAddress:
    """Return the map address that a request contains.

    Raises:
        Invalid: the page is not a number.
    """
    arguments = request.args
    values = {name: arguments.get(parameter, "").strip() for parameter, name in PARAMETERS.items()}
    profiles = tuple(dict.fromkeys(filter(None, arguments.getlist("profile"))))
    return MapAddress(**values, profiles=profiles[:2], page=page_number(request))


def question_of(call: Call, address: MapAddress) -> MapQuestion:
    """Return the question that a map address asks.

    Raises:
        Forbidden: the caller may not see headroom, the holders, or the past.
        Invalid: the request, a profile or the time is malformed.
    """
    planner = call.server.settings.planner
    request = requested(call, address.query)
    return MapQuestion(
        class_name=address.class_name,
        aggregates={uuid for names in planner.aggregates.values() for uuids in names.values() for uuid in uuids},
        request=request,
        project=_project(call, address.project),
        knows_projects=call.is_allowed(CONSUMERS),
        time=_past(call, address.at),
        knows_past=keeps_journal(call) and call.is_allowed(JOURNAL, project_id=None),
        ranked=[_ranked(call, request, name) for name in compared(call, address)] if request else [],
        place_locks=call.server.locks,
        locks=tuple(planner.exclusive.values()),
    )


def requested(call: Call, text: str) -> CandidateRequest | None:
    """Return the request that the query field stands for; it may also name a flavor."""
    if not text:
        return None
    call.authorize(HEADROOM)
    planner = call.server.settings.planner
    return request_of_text(pasted(text, planner.flavors, planner.flavor_root_required))


def compared(call: Call, address: MapAddress) -> tuple[str, ...]:
    """Return the names of the two compared profiles, if any; a single one is compared with the one in force."""
    if not address.profiles:
        return ()
    names = dict.fromkeys((*address.profiles, call.server.settings.planner.default_profile))
    return tuple(names)[:2]


def _past(call: Call, text: str) -> datetime | None:
    """Return the time that a map looks back to."""
    if not text:
        return None
    if not keeps_journal(call):
        raise Invalid("The server keeps no journal, so no earlier state can be shown.")
    call.authorize(JOURNAL, project_id=None)
    return moment_of(text)


@dataclass(frozen=True, slots=True)
class LookBack:
    """Times to look back to: the newest, the multiples of STEP that the slider goes back, and links by hours.

    They are in the notation of addresses; that of the present is empty.
    """

    latest: str
    steps: int
    links: Mapping[int, str]


def look_back(since: datetime | None) -> LookBack | None:
    """Return the times that a journal covers; None if it covers none."""
    now = datetime.now(UTC).replace(tzinfo=None)
    latest = now - (now - datetime.min) % STEP
    if since is None or since > latest - STEP:
        return None
    reach = min(timedelta(hours=HOURS[-1]), latest - since)
    links = {hours: latest - timedelta(hours=hours) for hours in HOURS if timedelta(hours=hours) <= reach}
    texts = {hours: f"{time:{TIME}}" if hours else "" for hours, time in links.items()}
    return LookBack(f"{latest:{TIME}}", reach // STEP, texts)


def _project(call: Call, project: str) -> str:
    if project:
        call.authorize(CONSUMERS)
    return call.server.settings.planner.names.project_id(project)


def _ranked(call: Call, request: CandidateRequest, name: str) -> CandidateQuestion:
    """Return the question for the best hosts by a profile."""
    settings = call.server.settings
    if name not in settings.planner.profiles:
        raise Invalid(f"There is no profile {name}; there are {', '.join(settings.planner.profiles)}.")
    profile = settings.planner.profiles[name]
    ranking = Ranking(profile, levels=tuple(settings.planner.levels.values()))
    judge, options = call.server.fragmentation_judges.get(profile.name), replace(call.server.search, shuffled=False)
    return CandidateQuestion(replace(request, limit=BEST), options, ranking, judge)
