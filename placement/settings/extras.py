"""Packages that only some options need, installed by the extras of pyproject.toml."""

from importlib import import_module
from typing import Any

from placement.errors import ConfigurationError


def module_for(option: str, module: str, *, package: str, extra: str) -> Any:
    """Import a module that an option needs.

    Args:
        option: the option as operators write it, such as ``[metrics] enabled``.
        module: the module.
        package: the package that it belongs to or needs.
        extra: the extra that installs the package.

    Raises:
        ConfigurationError: the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"{option} needs {package}, which is not installed: pip install 'placement-server[{extra}]'."
        ) from error
