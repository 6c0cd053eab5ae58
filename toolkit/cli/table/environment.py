"""Environment variables, files and exit statuses of the program, for the manual page and the reference."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXIT_STATUS: Mapping[int, str] = MappingProxyType(
    {
        0: "success",
        1: "a check, a call or a comparison did not succeed",
        2: "wrong usage, or a policy that does not load",
    }
)

ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "RINGFENCE_AUDIT_KEY": "the file of the key that seals audit records; --audit-key overrides it",
        "RINGFENCE_AUDIT_LOG": "a file that every audit record is also appended to; --audit-log overrides it",
        "RINGFENCE_AUDIT_LOG_ROTATE": "the size at which that file is rotated, and how many rotated files are"
        " kept, such as 100MiB:10; --audit-log-rotate overrides it",
        "RINGFENCE_CACHE": "the directory of the cache of loaded policies; `off`: no cache",
        "RINGFENCE_DOCS_URL": "the address of these pages, for the links in the output of `check`",
        "RINGFENCE_PAGER": "the pager for long output at a terminal; empty or cat: none",
        "PAGER": "the pager, if RINGFENCE_PAGER is not set (default: less)",
        "NO_COLOR": "not empty: no colour",
        "COLUMNS": "the width of the help and of tables, in characters (default: the terminal's)",
        "XDG_STATE_HOME": "the directory of the user's state directories (default: ~/.local/state)",
        "XDG_CACHE_HOME": "the directory of the user's caches (default: ~/.cache)",
        "AWS_ENDPOINT_URL": "the server of an s3:// root; --endpoint overrides it",
    }
)

FILES: Mapping[str, str] = MappingProxyType(
    {
        "ringfence.yaml": "the policy of a workspace, in its root",
        "ringfence.cases.yaml": "test cases of that policy, which `check` runs",
        ".ringfence/": "in the root: content that calls deleted or replaced and undo may need",
        "~/.local/state/ringfence/": "the state of each workspace: history, approvals and audit",
        "~/.cache/ringfence/policies/": "the cache of loaded policies, which can be removed at any time",
    }
)
