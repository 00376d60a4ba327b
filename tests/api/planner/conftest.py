"""A server with a level for devices."""

import pytest
from flask import Flask

from tests.api.conftest import Api, with_settings


@pytest.fixture
def levels(app: Flask) -> Api:
    """A server on which GPUs form a level."""
    levels = "{numa: HW_NUMA_ROOT, pcie: CUSTOM_HW_PCIE_SWITCH, gpu: CUSTOM_GPU}"
    return with_settings(app, planner_yaml=f"levels: {levels}")
