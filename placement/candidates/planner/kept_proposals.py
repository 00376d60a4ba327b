"""What hosts gave to requests, kept from claim to claim by everything that the search sees of a host.

That is its form (``candidates.host_sketches``), including what is free and used. The same form gives the same result in
any snapshot, so what is kept can never be stale.
"""

from collections.abc import Hashable
from typing import NamedTuple

from placement.candidates.canonical import CanonicalForm
from placement.candidates.compose.proposals import Proposals
from placement.candidates.host_sketches import HostSketch
from placement.cloud.derived import TIMELESS, Derived

BYTES_OF_PROVIDER = 700
"""What a host takes for each of its providers, its form and the proposals in it included."""


class FoundInHost(NamedTuple):
    """What a host gives, and the host that gave it."""

    host: HostSketch
    proposals: Proposals


class KeptProposals:
    """What hosts of each form give to one request.

    Args:
        derived: keeps it.
        asked: everything but the host's form that decides.
    """

    def __init__(self, derived: Derived, asked: Hashable) -> None:
        self._derived = derived
        self._asked = asked

    def get(self, form: CanonicalForm) -> FoundInHost | None:
        """Return what a host of a form gives; None if unknown."""
        kept = self._derived.find(TIMELESS, ("proposals", self._asked, form))
        found: FoundInHost | None = None if kept is None else kept.value
        return found

    def remember(self, found: FoundInHost) -> None:
        """Keep what a host gives, unless a longer search might find more."""
        if found.proposals.complete:
            name = "proposals", self._asked, found.host.form
            self._derived.keep(TIMELESS, name, found, size=BYTES_OF_PROVIDER * len(found.host.providers))
