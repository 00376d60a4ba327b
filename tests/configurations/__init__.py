"""Configuration as deployment tools write it.

The files have the options that the templates of these tools set, in the release of 2026.1, with values of our own.
"""
