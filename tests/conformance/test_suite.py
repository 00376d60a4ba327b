"""Each file of the reference's suite passes, except for the tests in the two lists.

pytest tests/conformance                                   the public files, on SQLite and on PostgreSQL
pytest tests/conformance --all-files                       all of them
pytest tests/conformance -k granular --database sqlite     one file, one database
pytest tests/conformance --server reference                the harness itself, against the reference
"""

from tests.conformance import suite
from tests.conformance.conftest import EmptyServer


def test_the_file_passes(file: str, database_kind: str, empty_server: EmptyServer) -> None:
    failed = suite.failures(file, empty_server(database_kind, suite.profile_of(file)))
    excluded = {test for where, test in suite.named_tests("excluded.txt") if where == file}
    expected = {test for where, test in suite.named_tests("expected_failures.txt") if where == file}
    problems = [f"{test}\n    {failed[test]}" for test in failed if test not in excluded | expected]
    assert not problems, f"{len(problems)} tests of {file} failed:\n" + "\n".join(problems)
    assert not expected - set(failed), "a test of expected_failures.txt passes: take it off the list"
