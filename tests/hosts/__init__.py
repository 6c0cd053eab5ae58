"""Tests with live hosts: real programs from npm, models that are scripts, and no network."""
