"""Rule offers: from a request, rules that would have answered it, what each opens, and the proof that it is safe."""
