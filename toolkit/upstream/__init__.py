"""Upstream MCP servers: started or reached, their tools listed, their calls carried; judges nothing.

What a server says is untrusted: it is bounded, and never makes a verdict looser.
"""
