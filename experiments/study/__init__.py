"""What every study and the benchmark stand on: cells, splits, scores, claims, peers and reports."""
