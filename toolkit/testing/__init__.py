"""Testing: for users' own tests of policies, sessions and backends."""
