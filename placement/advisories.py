"""Library releases that fix problems serious enough to warn about.

They are not minimum versions of the package, because OpenStack's upper-constraints or a distribution may pin older
ones: the server starts regardless, and logs a warning.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

LOG = logging.getLogger(__name__)

_version = cache(version)
"""Cached because it reads a file, and one process may create many applications."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """A problem that a release of a package fixes; older installations get a warning."""

    package: str
    mended_in: tuple[int, ...]
    trouble: str


ADVISORIES = (
    Advisory(
        "gunicorn", (27, 0, 1), "keep-alive connections of gthread workers and malformed HTTP are handled less strictly"
    ),
)


def warn_of_old_libraries(
    advisories: Iterable[Advisory] = ADVISORIES, installed: Callable[[str], str] = _version
) -> None:
    """Log one warning for each library here that is older than the release with the fix."""
    for advisory in advisories:
        try:
            version = installed(advisory.package)
        except PackageNotFoundError:
            continue
        if _numbers(version) < advisory.mended_in:
            mended = ".".join(map(str, advisory.mended_in))
            LOG.warning(
                "%s %s is installed: %s. Release %s fixes it.", advisory.package, version, advisory.trouble, mended
            )


def _numbers(release: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    numbers = []
    for part in release.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
