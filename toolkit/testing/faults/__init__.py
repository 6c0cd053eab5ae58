"""Faults between a client library and a store: lost, late, truncated, refused and outdated replies."""

from ringfence.toolkit.testing.faults.http_proxy import HttpProxy
from ringfence.toolkit.testing.faults.model import KINDS, Fault, Seen
from ringfence.toolkit.testing.faults.run import Cell, Faulty, Run, Table, check_faults, report

__all__ = ["KINDS", "Cell", "Fault", "Faulty", "HttpProxy", "Run", "Seen", "Table", "check_faults", "report"]
