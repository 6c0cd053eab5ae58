"""S3, and servers with the same protocol, as a confined tree."""

from ringfence.toolkit.storage.s3.backend import S3

__all__ = ["S3"]
