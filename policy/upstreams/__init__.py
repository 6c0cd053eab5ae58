"""Upstreams: which arguments of other MCP servers' tools are paths, and what the tools do to them."""
