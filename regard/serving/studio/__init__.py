"""The page of `regard studio`: its files, and the routes that its views use, one module for each view."""
