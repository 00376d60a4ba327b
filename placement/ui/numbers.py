"""How pages write numbers: filters for the templates."""

from datetime import UTC, datetime

from flask import Flask

NOTHING = "\N{EN DASH}"


def number(value: float) -> str:
    """Return a number with its thousands apart, with a decimal only where it says something."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}"
    return f"{int(value):,}"


def percent(part: float, whole: float) -> str:
    """Return a part of a whole in percent; no percentage hides that something, or not all, is in use."""
    if whole <= 0:
        return NOTHING
    share = 100 * part / whole
    if 0 < share < 1:
        return "<1 %"
    return f"{99 if 99 < share < 100 else round(share)} %"


def moment(value: datetime | None) -> str:
    """Return a date of the database, which keeps UTC, to the minute."""
    return NOTHING if value is None else f"{value:%Y-%m-%d %H:%M} UTC"


def ago(value: datetime | None) -> str:
    """Return how long ago a date of the database was, in its largest unit."""
    if value is None:
        return NOTHING
    seconds = max(0, int((datetime.now(UTC).replace(tzinfo=None) - value).total_seconds()))
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def install_filters(app: Flask) -> None:
    """Make templates know these functions."""
    app.jinja_env.filters.update(number=number, percent=percent, moment=moment, ago=ago)
