"""When this process began to import the package.

A command's minutes count from here: importing torch takes seconds. The operating system's own start time of the process
would be a little earlier, but a shell script that ends with `exec regard …` hands on the time when the script started.
"""

import time

STARTED = time.monotonic()
"""by `time.monotonic`"""
