"""Table of what is detected: each detector with what it finds, the source of its format, and its search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ringfence.policy.detection import high_entropy, private_keys, token_formats


@dataclass(frozen=True, slots=True)
class Format:
    """A detector of the policy language.

    `finds` and `confirms` are for the documents: what is found, and what tells it from text that only looks
    like it. `sources` are pages of those who publish the format. Every find contains one of `markers`, if
    there are any: content without them is not searched. `spans` gets text with one byte for each unit.
    """

    finds: str
    confirms: str
    sources: tuple[str, ...]
    markers: tuple[bytes, ...]
    spans: Callable[[bytes], Iterator[tuple[int, int]]]


TABLE: Mapping[str, Format] = MappingProxyType(
    {
        "private-key": Format(
            finds="PEM blocks of private keys: PKCS #1, PKCS #8 (encrypted ones too), SEC 1, DSA, OpenSSH,"
            " SSH2, OpenPGP; the private part of a PuTTY key; also quoted in code or JSON, and cut off",
            confirms="at least 32 characters of base64, ten of them different, after the label",
            sources=(
                "https://www.rfc-editor.org/rfc/rfc7468",
                "https://www.rfc-editor.org/rfc/rfc5958",
                "https://www.rfc-editor.org/rfc/rfc1421",
                "https://www.rfc-editor.org/rfc/rfc9580#section-6.2",
                "https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key",
                "https://the.earth.li/~sgtatham/putty/latest/htmldoc/AppendixC.html",
            ),
            markers=(b"PRIVATE KEY", b"Private-Lines:"),
            spans=private_keys.spans,
        ),
        "aws-access-key": Format(
            finds="ids of access keys (`AKIA`, `ASIA`); secret keys within 200 bytes of an id, or after a"
            " name such as `secret_access_key`",
            confirms="the alphabet of base 32, and an account of at most twelve digits in ids that hold one;"
            " for a secret key its length, letters of both kinds and fifteen different characters",
            sources=(
                "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
                "https://docs.aws.amazon.com/STS/latest/APIReference/API_GetAccessKeyInfo.html",
            ),
            markers=(b"AKIA", b"ASIA", b"ecret", b"ECRET"),
            spans=token_formats.aws_access_key,
        ),
        "github-token": Format(
            finds="tokens with the prefixes `ghp_`, `gho_`, `ghu_`, `ghs_`, `ghr_` and `github_pat_`",
            confirms="the CRC-32 in the last six of 36 characters; for longer ones their length and sixteen"
            " different characters; for the tokens of an app (`ghs_APPID_JWT`) the header of the JWT",
            sources=(
                "https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/",
                "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github",
                "https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-an-installation-access-token-for-a-github-app",
            ),
            markers=(b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
            spans=token_formats.github_token,
        ),
        "slack-token": Format(
            finds="tokens with the prefixes `xoxb-`, `xoxp-`, `xoxe-`, `xoxe.xoxp-`, `xapp-` and the like;"
            " the addresses of webhooks, workflows and triggers at `hooks.slack.com`",
            confirms="a last part of at least 16 characters, eight of them different",
            sources=(
                "https://docs.slack.dev/authentication/tokens",
                "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks",
            ),
            markers=(b"xox", b"xapp-", b"xwfp-", b"hooks.slack"),
            spans=token_formats.slack_token,
        ),
        "jwt": Format(
            finds="JSON Web Tokens: signed (three parts) and encrypted (five parts)",
            confirms="a first part that is a JSON object with a text `alg`",
            sources=(
                "https://www.rfc-editor.org/rfc/rfc7519",
                "https://www.rfc-editor.org/rfc/rfc7515#section-7.1",
                "https://www.rfc-editor.org/rfc/rfc7516#section-7.1",
            ),
            markers=(b"eyJ", b"eyA", b"ew0", b"ewo", b"ewk"),
            spans=token_formats.jwt,
        ),
        "high-entropy": Format(
            finds="values of 16 to 200 characters in assignments and quotes that look random; hexadecimal"
            " ones only after a name such as `token` or `password`",
            confirms="how evenly the characters are spread and how often their kind changes; not after a name"
            " such as `hash`, `integrity` or `uuid`, and no UUID",
            sources=(),
            markers=(),
            spans=high_entropy.spans,
        ),
    }
)
