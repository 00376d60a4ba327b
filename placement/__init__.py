"""A placement server: tracks which resources there are and who uses them, and finds where a request fits best."""

__version__ = "1.0.0rc1"
