"""Azure blobs as a confined tree."""

from toolkit.azure.backend import Azure

__all__ = ["Azure"]
