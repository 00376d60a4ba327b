"""The examples of etc/placement/examples run, and the documentation shows what they print."""

import subprocess
import sys
from pathlib import Path

from tests.servers import plain_environment

SOURCE = Path(__file__).parents[2]


def test_the_page_shows_what_the_example_of_a_cloud_for_machine_learning_prints(tmp_path: Path) -> None:
    example = SOURCE / "etc" / "placement" / "examples" / "ai_cloud.py"
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, env=plain_environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = (SOURCE / "docs" / "ranking.md").read_text().partition("a test compares it. -->\n```text\n")[2]
    assert shown.partition("```")[0] == done.stdout
    assert list(tmp_path.iterdir()) == []
