"""The statements that readers send."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from placement.store.connection.database import Database


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Yield the statements that are sent to a database meanwhile."""
    sent: list[str] = []

    def note(*call: object) -> None:
        sent.append(str(call[2]))

    event.listen(database.reader, "before_cursor_execute", note)
    yield sent
    event.remove(database.reader, "before_cursor_execute", note)
