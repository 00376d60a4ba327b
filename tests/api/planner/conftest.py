"""A server with a level for devices."""

from dataclasses import replace

import pytest
from flask import Flask

from placement.settings import PlannerSettings
from tests.api.conftest import Api, with_settings


@pytest.fixture
def levels(app: Flask) -> Api:
    """A server on which GPUs form a level."""
    planner = replace(PlannerSettings(), levels={**PlannerSettings().levels, "gpu": "CUSTOM_GPU"})
    return with_settings(app, planner=planner)
