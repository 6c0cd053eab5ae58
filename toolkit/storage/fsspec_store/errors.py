"""Errors of a store as the codes of a call: whatever the library of a store raises is a CallError here.

Never shows a library's own words, which may hold a password or a path of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.ambiguous_outcome import no_reply


@contextmanager
def errors(path: str) -> Iterator[None]:
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
        # A store that will not say is not a store where nothing is.
        raise CallError("io_error", f"The store does not permit it: '{path}'", where=path) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CallError("io_error", f"The store failed on '{path}': {reason}", where=path) from None
    except Exception as error:
        # The libraries of stores raise what they like; here that is the store's failure and not ours.
        reason = type(error).__name__
        raise CallError("io_error", f"The store failed on '{path}': {reason}", where=path) from error


@contextmanager
def changing(path: str) -> Iterator[None]:
    """As `errors`, for a request that changes something: without a reply it may be carried out still."""
    with errors(path):
        try:
            yield
        except (ConnectionError, TimeoutError) as error:
            raise no_reply(path) from error
