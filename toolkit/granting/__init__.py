"""Granting: texts and figures for the person who decides about a request."""
