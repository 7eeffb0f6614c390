"""The few ways strays can fail. Each message says what was got, what was expected and what to do."""


class StraysError(Exception):
    """Base of every error that strays raises on purpose."""


class UsageError(StraysError, ValueError):
    """strays was called wrongly: an option, parameter or combination that cannot work."""


class DataError(StraysError, ValueError):
    """The data cannot be used: a file, row, column, label or array is not what it should be."""


class NoRowsError(DataError):
    """A file is in order but holds no rows; in a folder of files it is passed over."""


class EncoderError(StraysError):
    """An encoder cannot be found, loaded, run or trusted."""


class ModelError(StraysError):
    """A saved model cannot be read, or does not fit what it is asked to do."""


class ClusterError(StraysError):
    """A cluster cannot be reached, or does not hold out."""


class CollapseError(StraysError):
    """A network mapped every text to the same point, so its scores would mean nothing."""


class StraysWarning(UserWarning):
    """Something works, but probably not as its user expects."""


def first_line(error: BaseException) -> str:
    """The first line of what another library says went wrong; its type where it says nothing."""
    return next(iter(str(error).splitlines()), type(error).__name__)
