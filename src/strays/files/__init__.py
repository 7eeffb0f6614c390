"""Files and folders: replaced so that nobody ever sees half of one, appended to, locked and removed.

What replaces a file or folder is written beside it, in a hidden folder of our own (workspace.py), flushed to the disk
and exchanged in one step (exchange.py). A failure, a crash or a power cut leaves what was there before, or what is new,
and nothing in between; what a killed process left is finished or removed by the next one. Nothing is deleted that is
not proved to be ours, and no file is made or written through a link. Everything here raises OSError; whoever calls it
says what that means to the user.
"""

from strays.files.disk import append, create, open_own, real_path, sha256, sync, sync_folder
from strays.files.locks import lock
from strays.files.modes import mode_like, private_like
from strays.files.removing import REMOVED, is_removed, remove_folder
from strays.files.replacing import read_steadily, recover, replace_file, replace_folder
from strays.files.workspace import remove_unfinished

__all__ = [
    "REMOVED",
    "append",
    "create",
    "is_removed",
    "lock",
    "mode_like",
    "open_own",
    "private_like",
    "read_steadily",
    "real_path",
    "recover",
    "remove_folder",
    "remove_unfinished",
    "replace_file",
    "replace_folder",
    "sha256",
    "sync",
    "sync_folder",
]
