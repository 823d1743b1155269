"""The package index that a build sees: the user's own, without its login."""
