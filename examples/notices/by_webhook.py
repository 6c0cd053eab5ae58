"""A signed web-hook for each approval that waits.

RINGFENCE_WEBHOOK_SECRET=... python by_webhook.py https://example.org/hook --root ~/project
"""

import hashlib
import hmac
import json
import os
import sys
import time
import urllib.request

from waiting import arguments, line, tell_of_each

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


def send(request, url, secret):
    body = json.dumps({**{name: request[name] for name in SENT}, "text": line(request)}).encode()
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "Ringfence-Timestamp": timestamp,
        "Ringfence-Signature": signature(secret, timestamp, body),
    }
    # Any answer but a success raises, and the message is sent again at the next look.
    urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10).close()


if __name__ == "__main__":
    own, options = arguments(__doc__, "url")
    key = os.environ.get("RINGFENCE_WEBHOOK_SECRET", "")
    if not key or not own.url.startswith(("https://", "http://")):
        sys.exit("by_webhook: needs an http(s) URL, and the secret in RINGFENCE_WEBHOOK_SECRET")
    try:
        sys.exit(tell_of_each(lambda request: send(request, own.url, key), own, options))
    except KeyboardInterrupt:
        sys.exit(0)
