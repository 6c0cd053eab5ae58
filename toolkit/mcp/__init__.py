"""Model Context Protocol (modelcontextprotocol.io) for a session, over stdio and HTTP; no rules of its own.

Supports both eras: the `initialize` handshake (2024-11-05 to 2025-11-25) and stateless 2026-07-28.
"""
