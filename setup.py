"""Packaging beyond what pyproject.toml can say: the wheel carries migrations/ as placement.migrations."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["placement*"]), "placement.migrations", "placement.migrations.versions"],
    package_dir={"placement.migrations": "migrations"},
)
