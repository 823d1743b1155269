"""Limits above which the comparisons of a table inform each other, separate from the code that imports scipy."""

# A comparison with fewer rounds is not judged, whatever other comparisons show.
FEWEST_SHARED = 3
# Fewer comparisons do not show by how much their variances differ.
FEWEST_COMPARISONS = 8
