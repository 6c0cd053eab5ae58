"""Errors of a store: every exception of a store's library becomes a CallError with a code.

Never shows a library's own message, which may contain a password or a path of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.ambiguous_outcome import no_reply


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Translate exceptions about `path` during the block into CallError."""
    try:
        yield
    except CallError:
        raise
    except FileNotFoundError:
        raise CallError("not_found", f"'{path}' does not exist", where=path) from None
    except FileExistsError:
        raise CallError("already_exists", f"'{path}' already exists", where=path) from None
    except IsADirectoryError:
        raise CallError("is_directory", f"'{path}' is a directory", where=path) from None
    except NotADirectoryError:
        raise CallError("not_a_directory", f"'{path}' is not a directory", where=path) from None
    except PermissionError:
        # A refused request does not mean that nothing is there.
        raise CallError("io_error", f"The store denied permission: '{path}'", where=path) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CallError("io_error", f"The store failed on '{path}': {reason}", where=path) from None
    except Exception as error:
        # Libraries of stores raise any exception; here it is a failure of the store, not a defect.
        reason = type(error).__name__
        raise CallError("io_error", f"The store failed on '{path}': {reason}", where=path) from error


@contextmanager
def changing(path: str) -> Iterator[None]:
    """Translate as `errors` does, for a change: without a reply the code is `outcome_unknown`."""
    with errors(path):
        try:
            yield
        except (ConnectionError, TimeoutError) as error:
            raise no_reply(path) from error
