"""The category of the package's own warnings."""


class RegardWarning(UserWarning):
    """Something that a user should know about a result. The commands print it in one line on standard error."""
