"""The category of the package's own warnings."""


class RegardWarning(UserWarning):
    """A warning that a user should know of to judge a result. Commands print it as one line on standard error."""
