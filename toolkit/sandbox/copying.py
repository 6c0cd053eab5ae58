from __future__ import annotations
from ringfence.toolkit.sandbox.request import Request
def prepare_copy(request: Request) -> None:
    raise NotImplementedError
