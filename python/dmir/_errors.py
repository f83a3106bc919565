"""The exceptions of the package."""


class Error(Exception):
    """What the package reports; its text is one sentence, or the diagnostics of the binary."""


class BinaryError(Error):
    """The binary is missing, cannot be started, or is too old for this package."""


class TraceError(Error):
    """A function cannot be traced: it failed, or no framework takes its arguments."""


class CompileError(Error):
    """A traced program cannot be compiled or run on this machine's processor."""


class StateError(Error):
    """A file holds no weights, or weights of another model."""
