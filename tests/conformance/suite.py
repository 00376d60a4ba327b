"""Runs one file of the suite against a base URL and reports the outcome of each of its tests."""

import unittest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gabbi import handlers, httpclient, suitemaker
from gabbi import utils as gabbi_files

from tests import reference
from tests.conformance import fixtures, profiles
from tests.http_calls import HttpCalls

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
SHOWN_CHARACTERS = 600

TestName = tuple[str, str]
"""(file, test)"""


def directory() -> Path:
    """Return the directory of the installed reference's files."""
    return reference.package_directory() / "tests" / "functional" / "gabbits"


def all_files() -> list[str]:
    """Return the names of the suite's files."""
    return sorted(path.name for path in directory().glob("*.yaml"))


def public_files() -> list[str]:
    """Return the names of the files that must pass completely."""
    lines = (HERE / "public.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def named_tests(list_name: str) -> dict[TestName, str]:
    """Read a list of tests: {(file, test): reason}."""
    lines = (HERE / list_name).read_text(encoding="utf-8").splitlines()
    rows = [line.split(" :: ", 2) for line in lines if line and not line.startswith("#")]
    return {(file, test): reason for file, test, reason in rows}


def profile_of(file: str) -> str:
    """Return the server configuration a file needs."""
    return profiles.profile_of(_content(file).get("fixtures") or [])


def failures(file: str, base_url: str) -> dict[str, str]:
    """Run a file on an empty server; return the problems of each failed test."""
    fixtures.APIFixture.call = HttpCalls(base_url)
    result = _Result()
    _gabbi_suite(file, base_url).run(result)
    return result.problems


def _content(file: str) -> dict[str, Any]:
    content: dict[str, Any] = gabbi_files.load_yaml(yaml_file=str(directory() / file))
    return content


def _gabbi_suite(file: str, base_url: str) -> unittest.TestSuite:
    address = urlsplit(base_url)
    content = _content(file)
    content.setdefault("defaults", {})["cert_validate"] = False
    suite: unittest.TestSuite = suitemaker.test_suite_from_dict(
        unittest.TestLoader(),
        file.removesuffix(".yaml"),
        content,
        str(directory()),
        address.hostname,
        address.port,
        fixtures,
        None,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
        test_loader_name="suite",
    )
    return suite


class _Result(unittest.TestResult):
    """Collects problems by the name of a test in its file."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: dict[str, str] = {}

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.problems[_name(test)] = _report(test, err[1])

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.problems[_name(test)] = _report(test, err[1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        # gabbi skips all tests of a file whose fixture failed.
        if reason == "fixture failure":
            self.problems[_name(test)] = reason

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.problems[_name(test)] = "passed, though the suite says it cannot"


def _name(test: unittest.TestCase) -> str:
    data: Mapping[str, Any] = getattr(test, "test_data", {})
    return str(data.get("name", test))


def _report(test: unittest.TestCase, error: BaseException) -> str:
    """Return what was sent, what was answered and which check failed."""
    data: Mapping[str, Any] = getattr(test, "test_data", {})
    answer: Mapping[str, str] = getattr(test, "response", None) or {}
    lines = [
        f"{data.get('method')} {getattr(test, 'url', data.get('url'))}",
        f"status {answer.get('status')}, expected {data.get('status')}",
        f"{type(error).__name__}: {error}"[:SHOWN_CHARACTERS],
        str(getattr(test, "output", ""))[:SHOWN_CHARACTERS],
    ]
    return "\n    ".join(lines)


class _LazyHttp(httpclient.Http):
    """gabbi's client, opening connections only when used: gabbi creates one for each test in advance."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def request(self, *arguments: Any, **named: Any) -> Any:
        super().__init__(**self._options)
        try:
            return super().request(*arguments, **named)
        finally:
            self.client.close()


def _lazy_http(cert_validate: bool = True, version: int = 1, **_: Any) -> _LazyHttp:
    return _LazyHttp(cert_validate=cert_validate, version=version)


httpclient.get_http = _lazy_http
