"""The cell magic %%dmir of notebooks, after %load_ext dmir."""

from __future__ import annotations

import ast
import shlex
import sys
from typing import Any

from ._cost import cost
from ._errors import Error, TraceError

_USAGE = "usage: %%dmir [--target NAME] [--by line|function|module|scope] [--planned] ARGUMENT…"


def load_ipython_extension(shell: Any) -> None:
    """Registers the magic; `%load_ext dmir` calls it."""
    shell.register_magic_function(lambda line, cell: _dmir(shell, line, cell), "cell", "dmir")


def _dmir(shell: Any, line: str, cell: str) -> Any:
    """%%dmir ARGUMENT…: runs the cell, and shows what the lines of its last function cost for the arguments.

    An argument is an expression of the notebook, NAME=EXPRESSION for one by name; the last function or class that the cell
    defines is traced, or, where the cell ends with an expression, its value. --target, --by and --planned are those of
    dmir.cost.
    """
    try:
        options, expressions = _options(line)
        name, last = _last(cell)
        done = shell.run_cell(cell)
        if not done.success:
            return None  # the shell has shown the error
        if last and done.result is None:
            raise Error("the cell's last expression is None; a function or a module can be traced")
        f = done.result if last else shell.user_ns[name]
        args = [shell.ev(text) for key, text in expressions if key is None]
        kwargs = {key: shell.ev(text) for key, text in expressions if key is not None}
        return cost(f, *args, **options, **kwargs)
    except Error as e:
        cause = e.__cause__
        if isinstance(e, TraceError) and cause is not None:
            shell.showtraceback((type(cause), cause, cause.__traceback__))
        print(f"dmir: {e}", file=sys.stderr)
        return None


def _options(line: str) -> tuple[dict[str, Any], list[tuple[str | None, str]]]:
    """The options of a line, and its arguments: names (None for those by position) and expressions."""
    options: dict[str, Any] = {}
    expressions: list[tuple[str | None, str]] = []
    words = iter(shlex.split(line, posix=False))
    for word in words:
        if word == "--planned":
            options["planned"] = True
        elif word in ("--target", "--by"):
            value = next(words, None)
            if value is None:
                raise Error(f"{word} needs a value; {_USAGE}")
            options[word[2:]] = value
        elif word.startswith("--"):
            raise Error(f"there is no option {word}; {_USAGE}")
        else:
            expressions.append(_argument(word))
    return options, expressions


def _argument(word: str) -> tuple[str | None, str]:
    try:
        call: ast.expr | None = ast.parse(f"f({word})", mode="eval").body
    except SyntaxError:
        call = None
    if isinstance(call, ast.Call):
        if len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred):
            return None, word
        if not call.args and len(call.keywords) == 1 and call.keywords[0].arg is not None:
            return call.keywords[0].arg, word.partition("=")[2]
    raise Error(f"{word} is not an expression without spaces; {_USAGE}")


def _last(cell: str) -> tuple[str, bool]:
    """The name of the last function or class of a cell, and whether the cell ends with an expression in its place."""
    try:
        body = ast.parse(cell).body
    except SyntaxError:
        return "", True  # the shell shows the error when it runs the cell
    if body and isinstance(body[-1], ast.Expr):
        return "", True
    for node in reversed(body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return node.name, False
    raise Error("the cell defines no function or class and does not end with an expression")
