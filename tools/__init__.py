"""What builds the data that the package ships."""
