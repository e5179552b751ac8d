"""An HTTP server on trained models: `regard serve` for other programs, `regard studio` with a page for people."""
