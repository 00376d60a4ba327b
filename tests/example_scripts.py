"""The scripts of etc/placement/examples, as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

DIRECTORY = Path(__file__).parents[1] / "etc" / "placement" / "examples"


def example(name: str) -> ModuleType:
    """Return a script by its name."""
    spec = importlib.util.spec_from_file_location(name, DIRECTORY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
