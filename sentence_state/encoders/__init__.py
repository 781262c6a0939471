"""Section 3.1, 3.2 and the baselines of Table 3: (x, lengths) -> Encoding."""
