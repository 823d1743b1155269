"""From where on the comparisons of a table help each other; apart from what computes with it, which imports scipy."""

# With fewer rounds, a comparison is not judged whatever others say.
FEWEST_SHARED = 3
# Fewer comparisons do not tell by how much their variances differ.
FEWEST_COMPARISONS = 8
