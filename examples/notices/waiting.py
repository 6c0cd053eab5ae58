"""What the scripts beside it share: look for approvals that wait, and tell of each new one once."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time

from ringfence.policy.detection import find as secrets
from ringfence.policy.model import DETECTORS, Detector
from ringfence.toolkit.text import escape

KNOWN_SECRETS = [Detector(name) for name in DETECTORS if name not in ("match", "high-entropy")]


def arguments(says, *positional, **options):
    """The script's own arguments; what it does not know goes to `ringfence approvals list`."""
    parser = argparse.ArgumentParser(description=says, allow_abbrev=False)
    for name in positional:
        parser.add_argument(name)
    for name, settings in options.items():
        parser.add_argument(f"--{name}", **settings)
    parser.add_argument("--every", type=float, default=2, metavar="SECONDS", help="how often to look")
    parser.add_argument("--once", action="store_true", help="look once, and end")
    return parser.parse_known_args()


def pending(options):
    """The requests that wait now."""
    program = shlex.split(os.environ.get("RINGFENCE", "ringfence"))
    done = subprocess.run(
        [*program, "approvals", "list", "--json", *options], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def tell_of_each(tell, own, options):
    """Call `tell` with each request; one that fails is tried again at the next look."""
    told = set()
    while True:
        requests = pending(options)
        for request in requests:
            if request["id"] not in told:
                try:
                    tell(request)
                    told.add(request["id"])
                except (OSError, subprocess.CalledProcessError) as error:
                    print(f"{request['id']}: not told: {error}", file=sys.stderr)
        told &= {request["id"] for request in requests}
        if own.once:
            return 0 if len(told) == len(requests) else 1
        time.sleep(own.every)


def line(request):
    """The question in a line; what an agent named can neither hide nor turn around any of it."""
    return without_secrets(f"{request['agent']} asks: {request['title']}")


def without_secrets(text):
    """A text in one line as it can be shown: escaped, and without what looks like a key or a token."""
    return escape(masked(text))


def masked(text):
    """A text with a mark in place of what looks like a key or a token, as a command may have one."""
    data = text.encode("utf-8", "surrogateescape")
    hidden = secrets.mask(data, secrets.find(data, KNOWN_SECRETS), lambda _: b"[hidden]")
    return hidden.decode("utf-8", "surrogateescape")


def how(request):
    return f"ringfence approvals show {request['id']}"
