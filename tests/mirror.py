"""The example that mirrors a cloud through the journal, as a module."""

import importlib.util
from pathlib import Path
from types import ModuleType

SCRIPT = Path(__file__).parents[1] / "etc" / "placement" / "examples" / "mirror.py"


def mirror_example() -> ModuleType:
    """Return the example."""
    spec = importlib.util.spec_from_file_location("mirror", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
