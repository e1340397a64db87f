"""LDA, the author-topic model and their nonparametric forms: scores, and peers beside them."""
