"""Configuration as deployment tools write it.

The files contain the options that these tools' templates set in the 2026.1 release, with our own values.
"""
