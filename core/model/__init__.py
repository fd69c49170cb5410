"""The nouns of an evaluation: frozen values without behaviour of their own."""
