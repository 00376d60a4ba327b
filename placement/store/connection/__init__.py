"""Engines, transactions and statements: how this server speaks to a database."""
