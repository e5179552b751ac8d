"""LibreTranslate's HTTP API, so that its clients work unchanged."""
