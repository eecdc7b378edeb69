"""The one error that means "the input is at fault": it becomes one line on stderr and exit code 2."""


class InputError(ValueError):
    """Bad input from outside; the message says what was given, what was expected and what to do."""


class CheckFailed(RuntimeError):
    """The work ran and its own check failed (a non-finite loss, a proof that does not hold): exit code 1."""
