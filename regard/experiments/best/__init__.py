"""`train --best`: several models, what they teach each other, and one model in the end."""
