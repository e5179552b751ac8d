"""Reading text: sentence pairs and labelled texts from files, normalization, vocabularies, batches."""
