"""The messages that chat programs take: what is destroyed, what is asked, its age and where to answer.

What an agent named is only ever in fields that format nothing, and never a preview or the content of a file.
"""

import re
import time

from waiting import how, line, without_secrets

from ringfence.toolkit.text import plural, rfc3339

SHOWN = 5  # paths that are named
LONGEST = 700  # characters of one text, escaped at most 3,000; the middle of a longer one is left out


def losses(request):
    """What would be gone afterwards, as lines; what only moves is not lost."""
    needs = [need for need in request["needs"] if not need["on_the_way"]]
    deleted = [need["path"] for need in needs if need["action"] == "delete" and "move" not in request["tool"]]
    replaced = [need["path"] for need in needs if need.get("kind") == "replace"]
    if not replaced and request["decision"].get("kind") == "replace":
        replaced = [request["decision"]["path"]]
    found = [
        f"{verb} {named(paths)}" for verb, paths in (("DELETES", deleted), ("REPLACES", replaced)) if paths
    ]
    if request["decision"].get("not_recoverable"):
        found.append("CANNOT BE UNDONE")
    return found


def named(paths):
    """The first paths, and how many there are."""
    shown = ", ".join(map(without_secrets, paths[:SHOWN]))
    return f"{plural(len(paths), 'path')}: {shown}{', …' if len(paths) > SHOWN else ''}"


def age(asked, now):
    """`3 minutes ago, at 2026-11-29T11:20:00Z`."""
    seconds = max(int(now - asked), 0)
    size, unit = next(
        (each for each in ((86_400, "day"), (3_600, "hour"), (60, "minute")) if seconds >= each[0]),
        (1, "second"),
    )
    return f"{plural(seconds // size, unit)} ago, at {rfc3339(asked)}"


def cut(text):
    """A text that fits, with both of its ends."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def page_of(request, pages):
    """The page of a request below the address of the review pages; None without one."""
    if not pages or not re.fullmatch(r"a-[0-9a-f]+", request["id"]):
        return None
    return f"{pages.rstrip('/')}/approvals/{request['id']}"


def texts(request, now):
    """The lines of a message: what is lost, what is asked, and from whom and when."""
    about = (
        f"session {without_secrets(request['session'])}, asked {age(request['asked'], now)}; {how(request)}"
    )
    return [*map(cut, losses(request)), cut(line(request)), cut(about)]


def slack(request, pages=None, now=None):
    """For an incoming webhook of Slack: `text` for notifications, `blocks` for the message."""

    def plain(text):
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"type": "plain_text", "text": escaped, "emoji": False}

    *lost, asked, about = texts(request, time.time() if now is None else now)
    blocks = [{"type": "header", "text": plain("Approval needed")}]
    blocks += [{"type": "section", "text": plain(f"⚠ {text}")} for text in lost]
    blocks += [{"type": "section", "text": plain(asked)}, {"type": "context", "elements": [plain(about)]}]
    page = page_of(request, pages)
    if page is not None:
        link = {"type": "mrkdwn", "text": f"<{page}|Look at it and answer>", "verbatim": True}
        blocks.append({"type": "section", "text": link})
    # The text is all that a notification shows, and what it names is not made a link or a preview of one.
    text = plain("; ".join([*lost, asked]))["text"]
    return {"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "blocks": blocks}


def teams(request, pages=None, now=None):
    """For the trigger of Teams' Workflows app: a message with an Adaptive Card."""

    def plain(text, **looks):
        # A run has no Markdown; dates and times would be functions in braces.
        run = {"type": "TextRun", "text": text.replace("{{", "{ {"), **looks}
        return {"type": "RichTextBlock", "inlines": [run]}

    *lost, asked, about = texts(request, time.time() if now is None else now)
    body = [{"type": "TextBlock", "text": "Approval needed", "weight": "Bolder", "size": "Medium"}]
    body += [plain(text, color="Attention", weight="Bolder") for text in lost]
    body += [plain(asked), plain(about, isSubtle=True, size="Small")]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    page = page_of(request, pages)
    if page is not None:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Look at it and answer", "url": page}]
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [content]}
