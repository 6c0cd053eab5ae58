"""A signed web-hook for each approval that waits, also in the shapes that Slack and Teams take.

RINGFENCE_WEBHOOK_SECRET=... python by_webhook.py https://example.org/hook --root ~/project
RINGFENCE_WEBHOOK_URL=... python by_webhook.py - --format slack --pages https://review.example.org
"""

import hashlib
import hmac
import json
import os
import re
import sys
import time
import urllib.request

from shapes import page_of, slack, teams
from waiting import arguments, line, masked, tell_of_each

SENT = ("id", "agent", "session", "tool", "paths", "asked")  # no content: it may be secret


def signature(secret, timestamp, body):
    """Over both, so that an old message cannot be sent again under a new time."""
    signed = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def is_genuine(secret, headers, body, now=None, within=300):
    """For who receives it: whether it was signed with the secret, and lately."""
    timestamp, given = headers.get("Ringfence-Timestamp", ""), headers.get("Ringfence-Signature", "")
    if not timestamp.isascii() or not timestamp.isdigit():
        return False
    if abs((time.time() if now is None else now) - int(timestamp)) > within:
        return False
    return hmac.compare_digest(signature(secret, timestamp, body).encode(), given.encode())


def plain(request, pages):
    """The fields of the request, for a program."""
    fields = {name: request[name] for name in SENT} | {"paths": list(map(masked, request["paths"]))}
    page = page_of(request, pages)
    return {**fields, "text": line(request), **({"page": page} if page else {})}


FORMATS = {"json": plain, "slack": slack, "teams": teams}


def send(request, url, secret, shape, pages):
    body = json.dumps(FORMATS[shape](request, pages)).encode()
    headers = {"Content-Type": "application/json"}
    if secret:
        timestamp = str(int(time.time()))
        headers["Ringfence-Timestamp"] = timestamp
        headers["Ringfence-Signature"] = signature(secret, timestamp, body)
    # Any answer but a success raises, and the message is sent again at the next look.
    urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10).close()


if __name__ == "__main__":
    own, options = arguments(
        __doc__,
        "url",
        format={"choices": sorted(FORMATS), "default": "json", "help": "the shape of the messages"},
        pages={"default": None, "metavar": "URL", "help": "where the review pages are, for links"},
    )
    key = os.environ.get("RINGFENCE_WEBHOOK_SECRET", "")
    # The address of a chat program's web-hook is a secret, too: others on the machine can read arguments.
    url = os.environ.get("RINGFENCE_WEBHOOK_URL", "") if own.url == "-" else own.url
    if not url.startswith(("https://", "http://")) or not (key or own.format != "json"):
        sys.exit(
            "by_webhook: needs an http(s) URL, or - and the URL in RINGFENCE_WEBHOOK_URL;"
            " and the secret in RINGFENCE_WEBHOOK_SECRET, except for a chat program"
        )
    if own.pages is not None and not re.fullmatch(r"https?://[^\s<>|\"]+", own.pages):
        sys.exit("by_webhook: --pages needs an http(s) URL")
    try:
        sys.exit(tell_of_each(lambda request: send(request, url, key, own.format, own.pages), own, options))
    except KeyboardInterrupt:
        sys.exit(0)
