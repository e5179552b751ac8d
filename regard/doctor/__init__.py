"""`regard doctor`: what is installed here, what can run, and whether it computes the right numbers."""
