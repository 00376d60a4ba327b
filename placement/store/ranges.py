"""Ranges of ids in WHERE clauses."""

from typing import Any

from sqlalchemy import ColumnElement, Integer, bindparam


def is_between(column: Any, first: str, last: str) -> ColumnElement[bool]:
    """Return the condition that a column lies between two parameters, both included.

    The bounds are written into the statement's text when it is sent: a prepared statement of PostgreSQL that does not
    know them expects one row in two hundred, and is kept for twenty trees and for twenty thousand alike.
    """
    bounds = [bindparam(name, type_=Integer, literal_execute=True) for name in (first, last)]
    return column.between(*bounds)  # type: ignore[no-any-return]
