"""The file of last runs has a row for each environment, the newest one's."""

from pathlib import Path

import pytest

from tests.last_run import HEADER, note_run


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NOTE_RUN", "1")
    return tmp_path / "LAST_RUN.md"


def test_each_environment_has_one_row(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for environment, failed in (("nightly", 3), ("deploy", 0), ("nightly", 0)):
        monkeypatch.setenv("TOX_ENV_NAME", environment)
        note_run({"passed": 7, "failed": failed}, 90, file)
    rows = file.read_text().removeprefix(HEADER).splitlines()
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| `deploy`", "7 passed", "2"],
        ["| `nightly`", "7 passed", "2"],
    ]


def test_nothing_is_noted_unasked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTE_RUN")
    monkeypatch.setenv("TOX_ENV_NAME", "nightly")
    note_run({"passed": 7}, 90, file)
    assert not file.exists()
