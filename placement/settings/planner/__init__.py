"""The planner file, ``planner.yaml``: the operator's settings for ranking and planning, as plain frozen values.

Each top-level key of the file is a section. ``sections.py`` has their table, most of their readers, and how to add one;
``profiles.py`` reads the profiles; ``document.py`` has the tools for reading.
"""

from placement.settings.planner.values import PlannerSettings

__all__ = ["PlannerSettings"]
