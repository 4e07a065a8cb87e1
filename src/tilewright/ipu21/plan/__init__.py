"""Decide, for every value of a graph, who owns which part in which order, and for every operation the stages
that compute it. No addresses, no physical tiles."""
