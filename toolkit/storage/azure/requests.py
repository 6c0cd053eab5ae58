"""Requests about blobs, each on a condition, and what became of one whose reply was lost.

The client sends a request again by itself. One that is refused after that, or never answered, may have been
carried out: then the blob itself is looked at, and what it does not tell is raised.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.ambiguous_outcome import outcome_unknown, was_made
from ringfence.toolkit.storage.azure.attributes import fields_of, put_with
from ringfence.toolkit.storage.azure.sends import counting
from ringfence.toolkit.storage.backend import path_changed

_EXISTS = "BlobAlreadyExists"


class Requests:
    """Requests about the blobs of one container; `note` is told the paths of changes that a look settled."""

    def __init__(self, service: Any, container: str, note: Callable[[str], None]) -> None:
        self._service = service
        self._container = container
        self._note = note

    # ------------------------------------------------------------------ looking

    async def properties(self, blob: str, tag: str | None = None) -> Any:
        """The properties of a blob, of exactly the one with this tag. None where it is not."""
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

        async with self._client(blob) as client:
            try:
                return await client.get_blob_properties(**_only(tag))
            except (ResourceNotFoundError, ResourceModifiedError):
                return None

    async def content(self, blob: str, tag: str) -> bytes | None:
        """The content of exactly the blob with this tag, None where it is not."""
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

        async with self._client(blob) as client:
            try:
                stream = await client.download_blob(**_only(tag))
                return bytes(await stream.readall())
            except (ResourceNotFoundError, ResourceModifiedError):
                return None

    async def fields(self, blob: str, tag: str) -> Metadata | None:
        """What is attached to exactly the blob with this tag, None where it is not."""
        found = await self.properties(blob, tag)
        return None if found is None else fields_of(found, await self._tags(blob, found.tag_count))

    async def _tags(self, blob: str, count: int | None) -> dict[str, str] | None:
        from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

        if not count:
            return {}
        async with self._client(blob) as client:
            try:
                return dict(await client.get_blob_tags())
            except (ClientAuthenticationError, HttpResponseError):
                return None  # a right of its own

    async def below(self, start: str, *, only_whether: bool = False) -> tuple[list[tuple[str, Stat]], bool]:
        """Names below a prefix, and whether anything begins with it, be it only its own marker.

        Those of directories end with a slash; an empty name is the marker's.
        """
        rows, there = [], False
        async with self._service.get_container_client(self._container) as client:
            async for item in client.walk_blobs(name_starts_with=start, delimiter="/", include=["metadata"]):
                there = True
                if only_whether:
                    break
                name = item.name[len(start) :]
                rows.append((name, Stat(DIRECTORY, 0) if name.endswith("/") else stat_of(item)))
        return rows, there

    # ----------------------------------------------------------------- changing

    async def put(
        self, blob: str, path: str, data: bytes, tag: str | None, fields: Metadata
    ) -> tuple[str, NotKept]:
        """Put a blob where none is, or over the one with this tag. The tag it has then, and what it lacks.

        Raises FileExistsError, CallError `path_changed` and `outcome_unknown`, and ConnectionError where no
        final reply came.
        """
        said, lost = put_with(fields)
        try:
            return await self._put(blob, path, data, tag, said), lost
        except PermissionError:
            if "tags" not in said:
                raise
        del said["tags"]  # a right of its own
        return await self._put(blob, path, data, tag, said), (*lost, "tags")

    async def _put(self, blob: str, path: str, data: bytes, tag: str | None, said: dict[str, Any]) -> str:
        said = {"overwrite": tag is not None, **_only(tag), **said}
        with counting() as sent:
            try:
                async with self._client(blob) as client:
                    with _answers():
                        answer = await client.upload_blob(data, **sent.hooks(), **said)
            except (FileExistsError, _Refused):
                if sent.again:
                    return await self._settled_put(blob, path, data, tag)
                if tag is None:
                    raise FileExistsError from None
                raise path_changed(path) from None
        return str(answer["etag"]).strip('"')

    async def _settled_put(self, blob: str, path: str, data: bytes, tag: str | None) -> str:
        """The tag of a blob that was put there after all."""
        found = await self.properties(blob)
        if found is None:
            raise outcome_unknown(path)
        now = _tag(found)
        ours = found.size == len(data) and await self.content(blob, now) == data
        if tag is None and not ours:
            raise FileExistsError
        if not was_made(path, ours=ours, as_judged=now == tag):
            raise path_changed(path)
        self._note(path)
        return now

    async def delete(self, blob: str, path: str, tag: str) -> None:
        """Delete exactly the blob with this tag. Raises as `put` does, and FileNotFoundError."""
        with counting() as sent:
            try:
                async with self._client(blob) as client:
                    with _answers():
                        await client.delete_blob(**sent.hooks(), **_only(tag))
            except (FileNotFoundError, _Refused) as error:
                if sent.again:
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
def _answers() -> Iterator[None]:
    """The service's answers to a change, by what they mean for it.

    Without a final reply, and after one that only says that the service failed, it may have been made.
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
        if isinstance(error, ResourceExistsError) and code == _EXISTS:
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


def _only(tag: str | None) -> dict[str, Any]:
    """The condition that a blob still has this tag."""
    from azure.core import MatchConditions

    if tag is None:
        return {}
    return {"etag": f'"{tag.strip(chr(34))}"', "match_condition": MatchConditions.IfNotModified}


def _tag(blob: Any) -> str:
    return str(blob.etag).strip('"')


def stat_of(blob: Any) -> Stat:
    """What a blob is, by its properties."""
    # Where the account has real directories, they are blobs that say so. What has content is a file.
    marks = {key.lower(): value for key, value in (blob.metadata or {}).items()}
    if marks.get("hdi_isfolder") == "true" and not blob.size:
        return Stat(DIRECTORY, 0)
    return Stat(FILE, blob.size, blob.last_modified.timestamp(), identity=_tag(blob))
