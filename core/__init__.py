"""What an evaluation is and decides, without performing any of it: values, decisions, scripts of effects."""
