"""The time when this process began to import the package.

The time limit of a command counts from here, since importing torch takes seconds. The operating system's start time of
the process would be a little earlier, but after `exec regard …` in a shell script it is that of the script.
"""

import time

STARTED = time.monotonic()  # in seconds of `time.monotonic`
