"""The names that other projects import from ``placement``; docs/reference/python-names.md lists them."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest
from oslo_config import cfg

from placement import conf, deploy, policies
from placement.settings.options import OPTIONS
from tests.databases import SQLiteDatabases

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "python-names.md").read_text()


def test_options_are_registered_and_listed() -> None:
    source = cfg.ConfigOpts()
    conf.register_opts(source)
    source([], default_config_files=[], default_config_dirs=[])
    assert source.placement.randomize_allocation_candidates is False
    assert {group for group, _options in conf.list_opts()} == OPTIONS.keys()


def test_rules_are_listed() -> None:
    assert "placement:allocation_candidates:list" in {rule.name for rule in policies.list_rules()}


def test_an_application_is_made_of_a_configuration_object(sqlite_databases: SQLiteDatabases, tmp_path: Path) -> None:
    source = cfg.ConfigOpts()
    conf.register_opts(source)
    source([], default_config_files=[], default_config_dirs=[])
    source.set_override("connection", sqlite_databases.copy(tmp_path), group="placement_database")
    source.set_override("auth_strategy", "noauth2", group="api")
    application = deploy.loadapp(source)
    assert application.test_client().get("/").status_code == 200
    application.extensions["placement"].database.dispose()


@pytest.mark.parametrize("name", re.findall(r"`(placement\.[a-z_.]+)", PAGE.partition("Absent")[2].partition("For")[0]))
def test_what_the_page_calls_absent_is_absent(name: str) -> None:
    parent = name.rpartition(".")[0]
    assert importlib.util.find_spec(parent) is None or importlib.util.find_spec(name) is None


@pytest.mark.parametrize(
    "name", re.findall(r"^\| `(placement\.(?:wsgi|deploy|conf|policies)[\w.]*)", PAGE, re.MULTILINE)
)
def test_what_the_page_calls_present_is_present(name: str) -> None:
    module = name if importlib.util.find_spec(name.rpartition(".")[0]) is None else name.rpartition(".")[0]
    assert importlib.import_module(module.removesuffix(".api"))
