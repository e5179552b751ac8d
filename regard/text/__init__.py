"""Text in: pairs and lines read, tidied and split."""
