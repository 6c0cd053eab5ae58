"""Azure blobs as a confined tree."""

from ringfence.toolkit.storage.azure.backend import Azure

__all__ = ["Azure"]
