"""Detection: finds secrets in content, as bytes. Pure, and linear in the size of the content."""
