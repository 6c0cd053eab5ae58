"""Agent Client Protocol (agentclientprotocol.com): a proxy that judges an agent between it and its editor."""
