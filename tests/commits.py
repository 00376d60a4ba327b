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


def is_changed(directory: Path) -> bool:
    """Return whether a tested commit changes something in a directory, or may do so.

    On main the last commit is tested, elsewhere all since main; uncommitted changes count, too.
    """
    base = _base()
    if base is None:
        return True
    changed = _git("diff", "--name-only", base, "--", str(directory))
    untracked = _git("ls-files", "--others", "--exclude-standard", "--", str(directory))
    return changed is None or untracked is None or bool(changed or untracked)


def _base() -> str | None:
    for main in ("origin/main", "main"):
        shared = _git("merge-base", "HEAD", main)
        if shared:
            return shared if shared != _git("rev-parse", "HEAD") else _git("rev-parse", "HEAD~1")
    return None


def _git(*arguments: str) -> str | None:
    """Return git's output, or None if git or the history is missing."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
