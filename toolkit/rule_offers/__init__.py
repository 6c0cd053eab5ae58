"""Rule offers: rules that would have answered a request, what each opens, and a proof that it is safe."""
