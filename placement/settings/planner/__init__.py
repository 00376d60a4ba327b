"""The planner file, ``planner.yaml``: what an operator says about ranking and planning, as plain frozen values.

Each key at the top of the file is a section, and each section has a module here with one function that reads it.
``sections.py`` holds the table of them and tells how to add one; ``document.py`` holds what readers read with.
"""

from placement.settings.planner.values import PlannerSettings

__all__ = ["PlannerSettings"]
