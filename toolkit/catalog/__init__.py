"""The catalog: the tools as agents, models and protocols are shown them."""
