"""Language server: what editors show and offer while somebody writes a policy; Language Server Protocol."""
