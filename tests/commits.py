"""What git knows about the commit under test."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEED_WITHOUT_A_COMMIT = 1
SEEDS = 1_000_000


def commit() -> str | None:
    """Return the commit under test; None where git does not tell."""
    return _git("rev-parse", "HEAD")


def seed() -> int:
    """Return a number that depends on the commit, so that each commit has its own, reproducible random requests."""
    tested = commit()
    return int(tested, 16) % SEEDS if tested else SEED_WITHOUT_A_COMMIT


def _git(*arguments: str) -> str | None:
    """Return git's output, or None if git or the history is missing."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
