"""Other people's toolkits, measured by their own code: each in a virtual environment of its own."""
