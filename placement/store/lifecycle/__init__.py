"""The life cycle of a database: create, adopt, open, upgrade, copy, release."""
