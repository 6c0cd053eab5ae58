"""Model APIs: what each of the four dialects asks and how it is answered, one module a dialect."""
