"""Every message that a user can meet, to be read aloud: ``python -m tests.messages [--doubtful]``.

Errors, log lines, what commands print, and help texts, from the code; {...} is what a message fills in. Some are
openstack-placement's, which clients match on. ``--doubtful`` lists those with a pronoun, or longer than 30 words.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import placement

ROOT = Path(placement.__file__).parent
LOGGED = {"debug", "info", "warning", "error", "exception", "critical"}
PRINTED = {"option", "echo", "wrong", "misnamed", "warn", "fail", "secho", "refused"}
RAISED = re.compile(
    r"(Error|Invalid\w*|Conflict\w*|NotFound|Exists|Forbidden|Unauthorized|Usage|Parameter|Unavailable)$"
)
PRONOUN = re.compile(r"\b(it|its|one|ones|they|them|their|this|these|those|such)\b", re.IGNORECASE)
LONGEST = 30


class Message(NamedTuple):
    """A message, and where it is."""

    place: str
    kind: str
    text: str

    @property
    def is_doubtful(self) -> bool:
        """Whether somebody should read it again: a pronoun that may have no noun, or many words in one sentence."""
        sentences = re.split(r"(?<=[.!?:;])\s", self.text)
        return bool(PRONOUN.search(self.text)) or any(len(each.split()) > LONGEST for each in sentences)


def messages() -> Iterator[Message]:
    """Yield the messages of every module, in the order of the code."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(ROOT.parent)}:{getattr(node, 'lineno', 0)}"
            for kind, text in _of(node):
                if len(text.split()) > 2:
                    yield Message(place, kind, " ".join(text.split()))


def _of(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        kind = "log" if name in LOGGED else "said" if name in PRINTED else "error" if RAISED.search(name) else ""
        for argument in node.args if kind else ():
            yield from ((kind, text) for text in _texts(argument))
        for keyword in node.keywords:
            if keyword.arg in {"help", "short_help", "epilog"}:
                yield from (("help", text) for text in _texts(keyword.value))
    elif isinstance(node, ast.ClassDef) and any(RAISED.search(ast.unparse(base)) for base in node.bases):
        yield "error", ast.get_docstring(node) or ""
    elif isinstance(node, ast.FunctionDef) and any("command(" in ast.unparse(each) for each in node.decorator_list):
        yield "help", ast.get_docstring(node) or ""


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an argument may be, with the expressions of an f-string in braces."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join([str(each.value) if isinstance(each, ast.Constant) else _filled(each) for each in parts])
        case ast.IfExp(body=body, orelse=other):
            yield from [*_texts(body), *_texts(other)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from [*_texts(left), *_texts(right)]


def _filled(node: ast.expr) -> str:
    return "{" + ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node) + "}"


if __name__ == "__main__":
    for message in messages():
        if "--doubtful" not in sys.argv or message.is_doubtful:
            print(f"{message.place}: {message.kind}: {message.text}")
