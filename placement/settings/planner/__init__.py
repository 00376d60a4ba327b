"""The planner file, ``planner.yaml``: the operator's settings for ranking and planning, as plain frozen values.

Each top-level key of the file is a section, and each section has a module here with a function that reads it.
``sections.py`` holds the table of sections and explains how to add one; ``document.py`` has the tools for reading.
"""

from placement.settings.planner.values import PlannerSettings

__all__ = ["PlannerSettings"]
