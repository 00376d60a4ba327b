"""A server with a level for devices."""

from dataclasses import replace

import pytest
from flask import Flask

from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api


@pytest.fixture
def levels(app: Flask) -> Api:
    """A server on which GPUs form a level."""
    settings = app.extensions["placement"].settings
    planner = replace(PlannerSettings(), levels={**PlannerSettings().levels, "gpu": "CUSTOM_GPU"})
    return Api(create_app(replace(settings, planner=planner)))
