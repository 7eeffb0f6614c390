"""The few ways strays can fail. Each message says what was got, what was expected and what to do.

Messages speak of parameters by their Python names, in braces, and list them in `param`; a front end that calls them
something else renders the message its own way:

    error = UsageError("{flag_rate} is 2; must be between 0 and 1", param="flag_rate")
    str(error)                      # flag_rate is 2; must be between 0 and 1
    error.named(option)             # --flag-rate is 2; must be between 0 and 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext


class _Message(Exception):  # noqa: N818
    """A message whose `params` can be named in another way. Braces around anything else are left as they are."""

    def __init__(self, message: str, *, param: str | Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.params = (param,) if isinstance(param, str) else tuple(param)

    @property
    def param(self) -> str | None:
        """The parameter that the message is about; the first of several."""
        return self.params[0] if self.params else None

    def named(self, name: Callable[[str], str]) -> str:
        """The message with every parameter called as `name` says."""
        message = self.message
        for param in self.params:
            message = message.replace(f"{{{param}}}", name(param))
        return message

    def __str__(self) -> str:
        return self.named(str)


class StraysError(_Message):
    """Base of every error that strays raises on purpose."""


class UsageError(StraysError, ValueError):
    """A parameter, an option or a combination of them that cannot work."""


class DataError(StraysError, ValueError):
    """The data cannot be used: a file, row, column, label or array is not what it should be."""


class NoRowsError(DataError):
    """A file is valid but holds no rows; in a folder of files it is skipped."""


class EncoderError(StraysError):
    """An encoder cannot be found, loaded, run or trusted."""


class LoadingError(EncoderError):
    """An encoder's files cannot be used, whatever runs it."""


class ModelError(StraysError):
    """A saved model cannot be read, or does not fit what it is asked to do."""


class ClusterError(StraysError):
    """A cluster cannot be reached, or fails while a job runs."""


class CollapseError(StraysError):
    """A network mapped every text to the same point, so its scores would mean nothing."""


class StraysWarning(_Message, UserWarning):
    """Something works, but probably not as its user expects."""


class Download(StraysWarning):
    """Something large is being fetched, which takes a while; whoever shows the warning can show how far it is, too.

    >>> told = Download("fetching the encoder")
    >>> told.show_on(nullcontext(lambda done, total: print(f"{done} of {total} bytes")))
    >>> with told.shown() as progress:
    ...     progress(10, 90)
    10 of 90 bytes
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._bar: AbstractContextManager[Callable[[int, int], None]] = nullcontext(lambda done, total: None)

    def show_on(self, bar: AbstractContextManager[Callable[[int, int], None]]) -> None:
        """Show how far it is on a bar, which is open while it lasts and is told (bytes done, bytes in all)."""
        self._bar = bar

    def shown(self) -> AbstractContextManager[Callable[[int, int], None]]:
        """For whoever fetches: the function to tell how far it is."""
        return self._bar


class Note(_Message):
    """Something a user should know and need not worry about, such as a choice that was made; it is never raised."""


def first_line(error: BaseException) -> str:
    """The first line of another library's error message, or its type if there is no message."""
    return next(iter(str(error).splitlines()), type(error).__name__)
