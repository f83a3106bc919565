"""`python -m dmir trace …` traces; any other command is one of the binary's."""

import os
import subprocess
import sys


def main() -> int:
    from . import _binary
    from ._errors import Error

    arguments = sys.argv[1:]
    if arguments[:1] == ["trace"]:
        from ._target import main as trace

        return trace(arguments[1:])
    try:
        binary = _binary.find()
        if os.name == "posix":
            os.execv(binary, [binary, *arguments])
        return subprocess.run([binary, *arguments]).returncode
    except Error as e:
        print(f"dmir: error: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
