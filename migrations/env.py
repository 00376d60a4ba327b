"""Alembic's environment: migrations use the connection, transaction and locks of placement/store/lifecycle/schema.py.

The server shares its database with the reference, so this history has a version table of its own.
"""

from alembic import context

from placement.store.tables import VERSION_TABLE, metadata

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("Migrations run through 'placement db upgrade', which holds the locks they need.")
context.configure(connection=connection, target_metadata=metadata, version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
