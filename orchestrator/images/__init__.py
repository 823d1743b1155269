"""The images of versions: how they are made, and what is done with those that there are."""
