"""Storage options that a library rejects, as errors about the caller's arguments.

Never shows a value, which may be a password, nor a library's own message.
"""

from __future__ import annotations

import re
from typing import Any

from ringfence.toolkit.errors import CallError

# botocore's exceptions for an unusable value, beside TypeError and ValueError.
_VALUE_ERRORS = (
    "InvalidS3AddressingStyleError",
    "InvalidConfigError",
    "ParamValidationError",
    "ProfileNotFound",
)


def wrong_option(name: str, why: str) -> CallError:
    """Return the error for an option, with the reason."""
    message = f"The root takes no option '{name}'"
    return CallError("invalid_arguments", message, where="options", hint=f"leave it out: {why}")


def refused_option(error: Exception, options: dict[str, Any]) -> CallError | None:
    """Return a CallError for the option that a library rejected; None for an error about anything else.

    Such an option may be inside an option that is a mapping.
    """
    nested = {name: key for key, value in options.items() if isinstance(value, dict) for name in value}
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if isinstance(error, TypeError) and unknown is not None:
        name = unknown[1]
        if name in options:
            return wrong_option(name, "this kind of store does not know it")
        if name in nested:
            return wrong_option(f"{nested[name]}.{name}", "this kind of store does not know it")
    is_value_error = (
        isinstance(error, TypeError | ValueError | AttributeError) or type(error).__name__ in _VALUE_ERRORS
    )
    if not options or not is_value_error or str(error).startswith("Protocol not known"):
        return None
    names = ", ".join(f"'{name}'" for name in sorted(options))
    kind = type(error).__name__
    message = f"The root's options have a value that this kind of store does not accept ({kind})"
    return CallError("invalid_arguments", message, where="options", hint=f"correct the value of {names}")
