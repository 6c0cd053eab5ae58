"""Laws of the layout of policies, over random policies with comments wherever YAML takes one."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.policy.errors import Where
from ringfence.policy.formatting.formatter import formatted
from ringfence.policy.formatting.key_order import POLICY
from ringfence.policy.loading.serialize import from_plain, to_plain

DETECTORS = ("private-key", "jwt", "high-entropy", {"match": "TODO [a-z]+"}, {"match": "it's"})
ENDS = ("2026-12-31", "2026-12-31T18:00:00+01:00", "2024-02-29T00:00Z")
WORDS = ("src/**", "*.py", "a", ".env", "**/x/", "/tmp/{a,b}", "docs/[a-z]*", "übung", "it's", "true")
EFFECTS = ("allow", "ask", "deny")


class Written:
    """Writes a policy as a person might: any order, quotes, brackets, indentation, comments."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.comments = 0

    def maybe(self, one_in: int = 3) -> bool:
        return self.random.randrange(one_in) == 0

    def comment(self) -> str:
        self.comments += 1
        return f"# c{self.comments}." + self.random.choice(("", " {", " 'x", ' "*": [a', "\t- b: #"))

    def beside(self) -> str:
        return " " * self.random.randint(1, 3) + self.comment() if self.maybe(4) else ""

    def alone(self, lines: list[str], indent: int) -> None:
        """Comments and blank lines between the lines of a block, indented as somebody left them."""
        while self.maybe(4):
            at = self.random.choice((0, indent, indent, indent + 1, max(0, indent - 2)))
            lines.append(" " * at + self.comment() if self.maybe(2) else "")

    def text(self, value: Any) -> str:
        if isinstance(value, int):
            return str(value).lower()
        styles = ["'" + value.replace("'", "''") + "'", f'"{value}"']
        if re.fullmatch(r"[a-z./ü][a-z./ü -]*|2[-:+TZ 0-9]*", value) and value not in ("true", "."):
            styles.append(value)
        return self.random.choice(styles)

    def key(self, key: str, path: tuple[str, ...]) -> str:
        is_name = len(path) < 3 or re.fullmatch("[a-z_]+", key)
        return key if is_name and re.fullmatch("[a-z_]+", key) and key != "true" else self.text(key)

    def flat(self, value: Any, indent: int) -> str:
        """In brackets, over several lines where there is a comment."""
        if not isinstance(value, dict | list):
            return self.text(value)
        is_list = isinstance(value, list)
        parts = (
            [self.flat(x, indent) for x in value]
            if is_list
            else [f"{self.key(k, ())}: {self.flat(v, indent)}" for k, v in value.items()]
        )
        out = "[" if is_list else "{"
        for at, part in enumerate(parts):
            out += self.gap(indent) + part + ("," if at < len(parts) - 1 else "") + " "
        return out + self.gap(indent) + ("]" if is_list else "}")

    def gap(self, indent: int) -> str:
        margin = "\n" + " " * (indent + self.random.randint(1, 5))
        return "".join(f" {self.comment()}{margin}" for _ in range(self.random.choice((0, 0, 0, 0, 0, 1, 2))))

    def block(self, value: Any, indent: int) -> list[str]:
        lines: list[str] = []
        step = self.random.randint(1, 4)
        margin = " " * indent
        if isinstance(value, dict):
            pairs = list(value.items())
            for key, each in pairs:
                self.alone(lines, indent)
                head = margin + self.key(key, ())
                self.value(lines, head + ":", each, indent, indent + step)
        else:
            for each in value:
                self.alone(lines, indent)
                if isinstance(each, dict) and each and self.maybe(2):
                    inner = self.block(each, indent + 2)
                    start = next(
                        i for i, x in enumerate(inner) if x.strip() and not x.lstrip().startswith("#")
                    )
                    lines += inner[:start]
                    lines.append(f"{margin}- {inner[start].lstrip()}")
                    lines += inner[start + 1 :]
                else:
                    self.value(lines, f"{margin}-", each, indent, indent + 2)
        self.alone(lines, indent)
        return lines

    def value(self, lines: list[str], head: str, value: Any, indent: int, deeper: int) -> None:
        if isinstance(value, dict | list) and value and self.maybe(2):
            lines.append(head + self.beside())
            lines += self.block(value, deeper)
        elif isinstance(value, str) and " " in value and self.maybe(2):
            lines.append(f"{head} {self.random.choice('|>')}" + self.random.choice(("", "-")) + self.beside())
            lines += [" " * deeper + line for line in value.split(" ")]
        else:
            lines += f"{head} {self.flat(value, indent)}{self.beside()}".split("\n")


def policies(random: Random) -> dict[str, Any]:
    """A policy that loads."""

    def some(make: Any, most: int = 3) -> list[Any]:
        return [make() for _ in range(random.randint(1, most))]

    def word() -> str:
        return random.choice(WORDS)

    def effect() -> Any:
        if random.randrange(3):
            return random.choice(EFFECTS)
        return narrowed({"effect": random.choice(EFFECTS), "reason": "because it is so"}, "effect")

    def narrowed(entry: dict[str, Any], effect: str = "") -> dict[str, Any]:
        """An entry that may end, be on trial or depend on content."""
        if random.randrange(4) == 0:
            entry["until"] = random.choice(ENDS)
        if random.randrange(4) == 0:
            entry["trial"] = random.randrange(2) == 0
        if random.randrange(3) == 0:
            entry["content"] = random.choice((some(detector), detector()))
            if effect:
                entry["effect"] = random.choice(EFFECTS[1:])
        return shuffled(entry)

    def detector() -> Any:
        return random.choice(DETECTORS)

    def shuffled(value: dict[str, Any]) -> dict[str, Any]:
        pairs = list(value.items())
        random.shuffle(pairs)
        return dict(pairs)

    def rules() -> Any:
        keys = random.sample(["read", "write", "write.create", "*", "edit_file"], random.randint(1, 3))
        return {
            key: random.choice(EFFECTS) if random.randrange(3) == 0 else {p: effect() for p in some(used)}
            for key in keys
        }

    def limits() -> Any:
        one = {"max_files": 3, "over": "ask", "per": "session"}
        return {"delete": random.choice((shuffled(one), [shuffled(one), {"max_bytes": 1000}]))}

    def used() -> str:
        """A pattern, or a set of them: those of the first are known to the second."""
        return random.choice((word(), word(), "@one", "@two")) if "sets" in whole else word()

    def mandatory() -> Any:
        item = {"deny": ["write", "delete"], "paths": some(used), "except": some(used), "reason": "it is so"}
        if random.randrange(3) == 0:
            item["except_agents"] = random.choice(("release", ["release", "release/*"]))
        return narrowed(item)

    def case() -> Any:
        if random.randrange(2):
            return shuffled({"tool": "create_file", "path": "a", "exists": True, "want": "ask"})
        return shuffled({"action": "write.edit", "path": "src/a.py", "want": "allow", "note": "it is read"})

    def invariant() -> Any:
        said = {"action": "write", "path": word(), "verdict": "allow", "agent": "a*"}
        return {random.choice(("never", "always")): shuffled(said)}

    whole: dict[str, Any] = {"version": 1, "extends": ["baseline"]}
    if random.randrange(2):
        whole["sets"] = {"one": some(word), "two": random.choice((some(word), ["@one", word()], "@one"))}
    whole |= {
        "mandatory": some(mandatory),
        "rules": rules(),
        "limits": limits(),
        "agents": {name: shuffled({"rules": rules(), "limits": limits()}) for name in ("coder", "a*")},
        "retention": {"days": 3},
        "invariants": some(invariant),
        "cases": some(case),
    }
    left = random.sample([key for key in whole if key != "sets"], random.randint(0, 6))
    return shuffled({key: value for key, value in whole.items() if key == "version" or key not in left})


def placeless(value: Any) -> Any:
    """The content of a policy without where it stands."""
    if isinstance(value, Where):
        return None
    if is_dataclass(value):
        return [placeless(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return value
    if hasattr(value, "items"):
        return [(key, placeless(each)) for key, each in value.items()]
    return [placeless(each) for each in value]


@given(st.integers(0, 2**48))
@settings(max_examples=200, deadline=None)
def test_content_and_every_comment_stay_and_twice_is_once(seed: int) -> None:
    random = Random(seed)
    written = Written(random)
    text = "\n".join(written.block(policies(random), 0)) + "\n"
    before = Policy.loads(text)
    out = formatted(text.encode())
    assert placeless(Policy.loads(out).whole) == placeless(before.whole)
    numbers = [int(number) for number in re.findall(r"# c(\d+)\.", out)]
    assert sorted(numbers) == list(range(1, written.comments + 1))
    assert formatted(out.encode()) == out
    keys = re.findall(r"^([a-z_]+):", out, re.MULTILINE)
    assert keys == [key for key in POLICY.keys if key in keys]
    assert not out.startswith("\n") and "\n\n\n" not in out and " \n" not in out


@given(st.integers(0, 2**48))
@settings(max_examples=200, deadline=None)
def test_what_is_kept_of_a_loaded_policy_is_all_of_it(seed: int) -> None:
    random = Random(seed)
    whole = Policy.loads("\n".join(Written(random).block(policies(random), 0)) + "\n").whole
    assert from_plain(json.loads(json.dumps(to_plain(whole)))) == whole
