"""Granting: what a person is shown of a request and of a grant before giving it."""
