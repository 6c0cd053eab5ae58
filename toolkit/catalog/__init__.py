"""The catalog: tools, calls and results in the shapes that agents, models and protocols use."""
