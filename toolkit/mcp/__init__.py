"""The Model Context Protocol in front of a session, over stdio and HTTP; it has no rules of its own.

Speaks both eras: the `initialize` handshake (2024-11-05 to 2025-11-25) and stateless 2026-07-28.
"""
