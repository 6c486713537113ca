"""Check the project's English: words and phrases that readers have to decode, and the shape of docstrings.

`make lint` gives it the names of all tracked texts; codespell checks their spelling. Names in the code count too: an
underscore is a space. String literals of tests and benchmarks are data and do not count.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# A space stands for any white space, a comment's next line, a hyphen or an underscore.
TROUBLE = {
    "anew": "again",
    "any more": "no longer",
    "(?:be|been|is|are|was|were) (?:had|owed|told)": "say who does what",
    "bury|buries|buried": "delete",
    "deeds?": "action",
    "doors?": "endpoint, interface",
    "in doubt": "unconfirmed",
    "left over": "pending, orphaned",
    "lies in": "is in",
    "made up(?! my mind)": "synthetic",
    "(?:makes?|made) up for": "backfill",
    "(?:no|some)body [a-z]+": "name the actor: a user, an operator, no client",
    "odd answers?": "invalid response",
    "of (?:its|her|his|their) own": "its own …, a separate …",
    "of theirs": "their …",
    "of which": "two sentences",
    'owed(?!")': "pending",
    "patience": "timeout, deadline",
    "puts? right": "repair",
    "read anew": "re-ingest",
    "resenders?|sweepers?": "worker, periodic task",
    "retell(?:ing|s)?|retold": "replay",
    "sets? aside": "superseded",
    "so that[^.;:]*? so that": "two sentences",
    "st(?:ands?|ood) beside": "is next to",
    "strangers?": "another user",
    "(?-i:What) (?:is|was|are|were)(?! [^.]*[?])": "a noun",
    "whoever": "a user who, a client that",
    "works no more": "was revoked, has expired",
}
SPACED = {pattern.replace(" ", r"[\s#_-]+"): instead for pattern, instead in TROUBLE.items()}
PATTERN = re.compile(rf"(?<![^\W_])(?:{'|'.join(SPACED)})(?![^\W_])", re.IGNORECASE)
CLAUSE = re.compile(r"(?:How|What|Where|Whether|Which|Who)\b")
MAX_WORDS = 100

WITH_DATA = ("tests/", "benchmarks/", "store/text/irregular_forms.py")

Finding = tuple[int, str]


def without_literals(source: str) -> str:
    """Return the code with dots in place of string literals that are not docstrings."""
    lines, tree = source.encode().splitlines(keepends=True), ast.parse(source)
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in texts:
            for number in range(node.lineno - 1, node.end_lineno):
                line = lines[number]
                begin = node.col_offset if number == node.lineno - 1 else 0
                end = node.end_col_offset if number == node.end_lineno - 1 else len(line) - 1
                lines[number] = line[:begin] + b"." * (end - begin) + line[end:]
    return b"".join(lines).decode()


def phrases(text: str) -> Iterator[Finding]:
    for found in PATTERN.finditer(text):
        instead = next(
            instead for pattern, instead in SPACED.items() if re.match(pattern, text[found.start() :], re.IGNORECASE)
        )
        yield text.count("\n", 0, found.start()) + 1, f"{' '.join(found[0].split())!r}: {instead}"


def docstrings(source: str) -> Iterator[Finding]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text, line = ast.get_docstring(node) or "", node.body[0].lineno if node.body else 1
            if CLAUSE.match(text):
                yield line, f"the docstring begins with {text.split()[0]!r}: begin with a verb or a noun"
            if len(text.split()) > MAX_WORDS:
                yield line, f"the docstring has more than {MAX_WORDS} words"


def comments(source: str) -> Iterator[Finding]:
    for block in re.finditer(r"(?:^[ \t]*#.*\n)+", source, re.MULTILINE):
        if len(block[0].split()) > MAX_WORDS:
            yield source.count("\n", 0, block.start()) + 1, f"the comment has more than {MAX_WORDS} words"


def check(name: str) -> Iterator[Finding]:
    text = Path(name).read_text(encoding="utf-8")
    if name.endswith(".py"):
        yield from docstrings(text)
        yield from comments(text)
        text = without_literals(text) if name.startswith(WITH_DATA) else text
    yield from phrases(re.sub(r"`[^`\n]*`", "", text) if name.endswith(".md") else text)


findings = [f"{name}:{line}: {what}" for name in sys.argv[1:] for line, what in sorted(check(name))]
sys.exit("\n".join(findings) or 0)
