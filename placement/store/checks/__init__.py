"""Checks of a database: what is broken, and what nobody needs any more."""
