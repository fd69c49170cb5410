"""What a person sees while a run goes on, and at its end."""
