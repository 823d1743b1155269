"""The images of versions: how they are built, and what is done with those that exist."""
