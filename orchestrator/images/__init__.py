"""The images of versions: building, locking, verifying, archiving and removing them."""
