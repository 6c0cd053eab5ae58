"""Requests on blobs, each with a condition, and the outcome of requests whose reply was lost.

The client repeats requests by itself. A request that is refused after that, or never answered, may have taken
effect: then the blob itself is compared. An outcome that stays unknown is an error.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.ambiguous_outcome import outcome_unknown, was_made
from ringfence.toolkit.storage.azure.metadata import put_with, tier_of
from ringfence.toolkit.storage.azure.seen import Listed
from ringfence.toolkit.storage.azure.sends import counted
from ringfence.toolkit.storage.backend import path_changed

_ALREADY_EXISTS = "BlobAlreadyExists"


class Requests:
    """Requests on the blobs of one container; `note` receives each path whose change was verified."""

    def __init__(self, service: Any, container: str, note: Callable[[str], None]) -> None:
        self._service = service
        self._container = container
        self._note = note

    # ------------------------------------------------------------------ reading

    async def properties(self, blob: str, tag: str | None = None) -> Any:
        """Return the properties of exactly the blob with this tag; None if there is none."""
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

        async with self._client(blob) as client:
            try:
                return await client.get_blob_properties(**_only_if(tag))
            except (ResourceNotFoundError, ResourceModifiedError):
                return None

    async def content(
        self, blob: str, tag: str | None = None, limit: int | None = None
    ) -> tuple[Any, bytes | None] | None:
        """Return properties and content of a blob, with `tag` of exactly that version; None if there is none.

        The properties lack the tier. The content is None if it has more than `limit` bytes.
        """
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

        async with self._client(blob) as client:
            try:
                # As it is stored: a change writes it back with the setting that says how it is encoded.
                stream = await client.download_blob(decompress=False, **_only_if(tag))
                if limit is not None and stream.properties.size > limit:
                    return stream.properties, None
                return stream.properties, bytes(await stream.readall())
            except (ResourceNotFoundError, ResourceModifiedError):
                return None

    async def tags(self, blob: str) -> dict[str, str] | None:
        """Return the index tags of a blob; None where they may not be read."""
        from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

        async with self._client(blob) as client:
            try:
                return dict(await client.get_blob_tags())
            except (ClientAuthenticationError, HttpResponseError):
                return None  # tags need a permission of their own

    async def names_below(self, prefix: str, *, at_most: int | None = None) -> Listed:
        """Return the names below a prefix; with `at_most` one answer with at most that many of them.

        PermissionError without the right to list.
        """
        from azure.core.exceptions import HttpResponseError

        found = Listed([], {})
        async with self._service.get_container_client(self._container) as client:
            pages = client.walk_blobs(
                name_starts_with=prefix, delimiter="/", include=["metadata"], results_per_page=at_most
            ).by_page()
            try:
                async for page in pages:
                    async for item in page:
                        name = item.name[len(prefix) :]
                        if name.endswith("/"):
                            found.rows.append((name, Stat(DIRECTORY, 0)))
                        else:
                            found.rows.append((name, stat_of(item)))
                            found.tiers[name] = tier_of(item)
                    # The service may send an answer without names though there are some.
                    if found.rows and at_most is not None:
                        return found._replace(complete=not pages.continuation_token)
            except HttpResponseError as error:
                if error.status_code == 403:
                    raise PermissionError(errno.EACCES, _code(error)) from None
                raise
        return found

    # ----------------------------------------------------------------- changing

    async def put(
        self, blob: str, path: str, data: bytes, tag: str | None, fields: Metadata
    ) -> tuple[str, NotKept]:
        """Create a blob, or replace the one with this tag; returns its tag and the fields not kept.

        FileExistsError, CallError `path_changed` or `outcome_unknown`; ConnectionError without a final reply.
        """
        arguments, not_kept = put_with(fields)
        try:
            return await self._put(blob, path, data, tag, arguments), not_kept
        except PermissionError:
            if "tags" not in arguments:
                raise
        del arguments["tags"]  # tags need a permission of their own
        return await self._put(blob, path, data, tag, arguments), (*not_kept, "tags")

    async def _put(
        self, blob: str, path: str, data: bytes, tag: str | None, arguments: dict[str, Any]
    ) -> str:
        arguments = {"overwrite": tag is not None, **_only_if(tag), **arguments}
        with counted() as sends:
            try:
                async with self._client(blob) as client:
                    with _translated_errors():
                        reply = await client.upload_blob(data, **sends.hooks(), **arguments)
            except (FileExistsError, _Refused):
                if sends.repeated:
                    return await self._written_tag(blob, path, data, tag)
                if tag is None:
                    raise FileExistsError from None
                raise path_changed(path) from None
        return str(reply["etag"]).strip('"')

    async def _written_tag(self, blob: str, path: str, data: bytes, tag: str | None) -> str:
        """Return the tag of a blob that was written although a repeated request was refused."""
        found = await self.properties(blob)
        if found is None:
            raise outcome_unknown(path)
        tag_now = _tag(found)
        now = await self.content(blob, tag_now) if found.size == len(data) else None
        ours = now is not None and now[1] == data
        if tag is None and not ours:
            raise FileExistsError
        if not was_made(path, ours=ours, as_judged=tag_now == tag):
            raise path_changed(path)
        self._note(path)
        return tag_now

    async def delete(self, blob: str, path: str, tag: str) -> None:
        """Delete exactly the blob with this tag. Raises as `put` does, and FileNotFoundError."""
        with counted() as sends:
            try:
                async with self._client(blob) as client:
                    with _translated_errors():
                        await client.delete_blob(**sends.hooks(), **_only_if(tag))
            except (FileNotFoundError, _Refused) as error:
                if sends.repeated:
                    found = await self.properties(blob)
                    if was_made(path, ours=found is None, as_judged=found is not None and _tag(found) == tag):
                        self._note(path)
                        return
                if isinstance(error, FileNotFoundError):
                    raise
                raise path_changed(path) from None

    def _client(self, blob: str) -> Any:
        return self._service.get_blob_client(self._container, blob)


class _Refused(Exception):
    """The condition was not met."""


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate the service's replies to a change into errors.

    Without a final reply, and after a reply that only reports a failure of the service, the change may have
    been made.
    """
    from azure.core.exceptions import (
        AzureError,
        HttpResponseError,
        ResourceExistsError,
        ResourceModifiedError,
        ResourceNotFoundError,
    )

    try:
        yield
    except ResourceModifiedError:
        raise _Refused from None
    except ResourceNotFoundError:
        raise FileNotFoundError from None
    except HttpResponseError as error:
        code, status = _code(error), error.status_code or 0
        if isinstance(error, ResourceExistsError) and code == _ALREADY_EXISTS:
            raise FileExistsError from None
        if status == 403:
            raise PermissionError(errno.EACCES, code) from None
        if not status or status >= 500:
            raise ConnectionError(errno.EIO, code) from error
        raise OSError(errno.EIO, code) from error
    except AzureError as error:
        raise ConnectionError(errno.EIO, type(error).__name__) from error


def _code(error: Any) -> str:
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or type(error).__name__)


def _only_if(tag: str | None) -> dict[str, Any]:
    """Return the condition that a blob still has this tag."""
    from azure.core import MatchConditions

    if tag is None:
        return {}
    return {"etag": f'"{tag.strip(chr(34))}"', "match_condition": MatchConditions.IfNotModified}


def _tag(blob: Any) -> str:
    return str(blob.etag).strip('"')


def stat_of(blob: Any) -> Stat:
    """Return the stat of a blob, given its properties."""
    # An account with real directories reports them as blobs with a flag. A blob with content is a file.
    marks = {key.lower(): value for key, value in (blob.metadata or {}).items()}
    if marks.get("hdi_isfolder") == "true" and not blob.size:
        return Stat(DIRECTORY, 0)
    return Stat(FILE, blob.size, blob.last_modified.timestamp(), identity=_tag(blob))
