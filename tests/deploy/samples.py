"""The samples in ``etc/``, adapted so that tests can run them: each replacement must match."""

from pathlib import Path

ETC = Path(__file__).parents[2] / "etc"


def sample(name: str, *replacements: tuple[str, str]) -> str:
    """Return the text of a sample with other ports and paths."""
    return replaced((ETC / name).read_text(encoding="utf-8"), *replacements)


def replaced(text: str, *replacements: tuple[str, str]) -> str:
    """Return a text with replacements."""
    for old, new in replacements:
        assert old in text, f"{old!r} is not in\n{text}"
        text = text.replace(old, new)
    return text
