"""One line, and no traceback, about a connection that SQLAlchemy's pool gives up because the database failed it."""

import logging

POOL = "sqlalchemy.pool.impl.QueuePool"

_ERRORS = {"DatabaseError", "InterfaceError"}
"""What every driver calls the classes of its errors (PEP 249)."""


class _OneLine(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and _ERRORS & {base.__name__ for base in type(error).__mro__}:
            words = (str(error).strip().splitlines() or [""])[0]
            shown = {"msg": f"{record.getMessage()}: {words}", "args": (), "exc_info": None}
            vars(record).update(shown, levelno=logging.WARNING, levelname="WARNING")
        return True


_ONE_LINE = _OneLine()


def keep_to_one_line() -> None:
    """Let the pool log such errors as warnings of one line."""
    logging.getLogger(POOL).addFilter(_ONE_LINE)  # has no effect a second time
