"""Cases that compute the vectors, one module per part of the method."""
