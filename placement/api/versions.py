"""Microversions: parsing the requested one, and selecting what belongs to it. They end at this package."""

from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

import microversion_parse

from placement.errors import Invalid, PlacementError

T_co = TypeVar("T_co", covariant=True)

SERVICE = "placement"


class Version(NamedTuple):
    """A microversion; compares numerically."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


MINIMUM = Version(1, 0)
MAXIMUM = Version(1, 39)


class UnacceptableVersion(PlacementError):
    """The server does not speak this microversion."""


@lru_cache(maxsize=128)
def requested_version(header: str | None) -> Version:
    """Return the microversion requested by the OpenStack-API-Version header, or the oldest if there is none.

    Invalid if the header is malformed, UnacceptableVersion if this server does not support the microversion.
    """
    requested = microversion_parse.get_version({"openstack-api-version": header or ""}, SERVICE)
    if not requested:
        return MINIMUM
    if requested == "latest":
        return MAXIMUM
    try:
        major, minor = microversion_parse.parse_version_string(requested)
    except (TypeError, ValueError) as error:
        raise Invalid(f"invalid version string: {requested}") from error
    version = Version(int(major), int(minor))
    if not MINIMUM <= version <= MAXIMUM:
        raise UnacceptableVersion(f"Unacceptable version header: {requested}")
    return version


class Versioned(Generic[T_co]):
    """One value per range of microversions: ``Versioned({(1, 0): a, (1, 12): b})`` is ``b`` from 1.12 on."""

    def __init__(self, since: Mapping[tuple[int, int], T_co]) -> None:
        entries = [(Version(*start), value) for start, value in since.items()]
        self._newest_first = sorted(entries, key=itemgetter(0), reverse=True)

    def items(self) -> list[tuple[Version, T_co]]:
        """Return the values with the microversion that each begins at, oldest first."""
        return self._newest_first[::-1]

    def at(self, version: Version) -> T_co:
        """Return the value for a microversion."""
        for start, value in self._newest_first:
            if start <= version:
                return value
        raise LookupError(f"nothing is defined at {version}")
