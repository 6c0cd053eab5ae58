"""Problem codes: the meaning of every problem with a policy, and a default hint.

A table only. A code never changes its meaning; a test checks that each can be produced and is documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_QUOTE = "put quotes around it"

# code -> (summary, hint)
PROBLEMS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "agent_name": (
            "a key under `agents` is not an agent's name or a pattern of names",
            'a sub-agent is written "parent/child"',
        ),
        "case_invalid": ("a case does not fit the tool it names", "say what the tool needs"),
        "command_pattern_empty": ("a pattern of a command's words is empty", "'*' is every command"),
        "command_pattern_long": (
            "a pattern of a command's words is longer than 1,024 characters or 64 words",
            "end it with '*' after the words that matter",
        ),
        "command_pattern_shell": (
            "a pattern of a command's words has something that a shell reads itself",
            "write the words of one simple command; put single quotes around what a shell would read itself",
        ),
        "command_pattern_wildcard": (
            "a pattern of a command's words has a wildcard inside a word",
            "'*' stands for a whole word, and at the end for any number of words",
        ),
        "duplicate_key": ("a key is written twice in one mapping", "keep one of them"),
        "effect_unknown": ("an effect is not allow, ask or deny", "write allow, ask or deny"),
        "example_fails": (
            "a pattern contradicts its own examples",
            "change the pattern or the example",
        ),
        "extends_cycle": ("a file extends itself, directly or through others", "take one of the links out"),
        "extends_unknown": (
            "the extended policy is neither a ready-made policy nor a file",
            "write a name, or a relative path that ends in .yaml",
        ),
        "file_encoding": ("the file is not UTF-8", "save it as UTF-8"),
        "file_unreadable": ("the file cannot be read", "check the name and the permissions"),
        "file_too_large": ("the file is larger than 1 MiB", "split it with extends"),
        "hidden_character": (
            "the file has a character that cannot be seen or that reorders text",
            "remove it",
        ),
        "key_long": (
            "a key has more than 1,024 characters with its quotes, which YAML does not read before a colon",
            'write it as ? "key", and the colon with the value on the next line',
        ),
        "key_missing": ("a required key is missing", "add it"),
        "key_unknown": ("a key is not known here", "see the reference of the policy language"),
        "number_invalid": ("a number is not a plain decimal", "write plain digits, without quotes"),
        "pattern_backslash": ("a pattern has a backslash", "separate names by '/'"),
        "pattern_brace": ("the braces of a pattern are not alternatives", "write {a,b}"),
        "pattern_character": (
            "a pattern has a character that cannot be seen",
            "'?' matches any one character",
        ),
        "pattern_class": ("a class of characters is not known", "write [abc], [a-z] or [!a-z]"),
        "pattern_empty": ("a pattern is empty", "'*' is everything"),
        "pattern_name": ("a pattern has an empty name in it", "leave one slash out"),
        "pattern_negated": (
            "a pattern begins with '!'",
            "write the exception as a later rule, or under except",
        ),
        "pattern_not_text": ("a pattern is read by YAML as something that is not text", _QUOTE),
        "pattern_parent": ("a pattern has '.' or '..' in it", "patterns only go down"),
        "pattern_range": ("a range in a class runs backwards", "turn it round"),
        "pattern_too_long": ("a pattern is longer than 1,024 characters", "write several"),
        "pattern_too_many": ("the braces of a pattern stand for more than 256 patterns", "write several"),
        "policy_empty": ("there is nothing in the file", "the smallest policy is 'version: 1'"),
        "policy_too_large": (
            "the patterns of a policy are too many",
            "use fewer alternatives in braces",
        ),
        "rule_key_unknown": (
            "a rule's key is neither a tool nor an action",
            "actions are read, write, delete, run and call; * is every path",
        ),
        "set_unknown": ("a set of patterns is used and not defined", "write it under sets"),
        "value_invalid": (
            "a value is not allowed here",
            "see the reference of the policy language",
        ),
        "version_unknown": ("the version of the policy language is not known", "write version: 1"),
        "yaml_alias": ("anchors, aliases and merges are not used in policies", "write it out"),
        "yaml_depth": ("the file nests too deeply", "no policy needs more than a few levels"),
        "yaml_documents": ("the file holds more than one document", "remove the line ---"),
        "yaml_syntax": ("the file is not YAML", "check indentation and quotes"),
        "yaml_tag": ("tags are not used in policies", "remove it"),
    }
)
