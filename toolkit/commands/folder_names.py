"""Names beside a workspace's state. A module of its own, as every session looks there when it opens."""

FOLDER = "commands"  # holds the scratches
TURN = "turn"  # the file in it that stays, and that a running command holds
