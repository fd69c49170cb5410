"""Configuration files and command-line values, read into documents."""
