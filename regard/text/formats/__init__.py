"""Files whose texts are translated while everything else in them stays byte for byte: one module for each format."""
