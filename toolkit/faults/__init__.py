"""Faults between a client library and a store: lost, late, halved, refused and outdated replies."""

from toolkit.faults.http_proxy import HttpProxy
from toolkit.faults.model import KINDS, Fault, Seen

__all__ = ["KINDS", "Fault", "HttpProxy", "Seen"]
