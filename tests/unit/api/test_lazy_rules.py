"""Paths match as with werkzeug's own rules, and URLs are built only when needed."""

import pytest
from werkzeug.routing import Map, Rule

from placement.api.routing import LazyRule

PATHS = ("/", "/traits", "/traits/<name>", "/resource_providers/<uuid>/traits", "/ui/<path:rest>")


def mapped(rule: type[Rule]) -> Map:
    return Map([rule(path, endpoint=path) for path in PATHS])


@pytest.mark.parametrize("path", ["/", "/traits", "/traits/CUSTOM_A", "/resource_providers/x/traits", "/ui/a/b"])
def test_a_path_is_matched_and_built_as_by_werkzeug(path: str) -> None:
    lazy, eager = (mapped(rule).bind("localhost") for rule in (LazyRule, Rule))
    endpoint, parts = lazy.match(path)
    assert (endpoint, parts) == eager.match(path)
    for values in (parts, {**parts, "page": "2 3"}):
        assert lazy.build(endpoint, values) == eager.build(endpoint, values)
    assert lazy.build(endpoint, parts) == path
