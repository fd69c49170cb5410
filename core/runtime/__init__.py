"""What happens in an attempt and a run: scripts of effects, and the machines around them."""
