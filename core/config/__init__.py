"""Configuration as documents: layers, references, known fields, precise refusals."""
