"""A placement server: who has which resources, who uses them, where can a request go, and where is it best."""

__version__ = "1.0.0rc1"
