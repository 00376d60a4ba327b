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


def test_nothing_is_compiled_before_a_url_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compile_builder = Rule._compile_builder

    def counted(rule: Rule, append_unknown: bool = True):
        made.append(rule.rule)
        return compile_builder(rule, append_unknown)

    monkeypatch.setattr(Rule, "_compile_builder", counted)
    paths = mapped(LazyRule).bind("localhost")
    assert paths.match("/traits/CUSTOM_A") == ("/traits/<name>", {"name": "CUSTOM_A"})
    assert made == []
    assert [paths.build("/traits/<name>", {"name": name}) for name in "AB"] == ["/traits/A", "/traits/B"]
    assert made == ["/traits/<name>"]
