"""Users' Python, seen from inside: what runs in a child process of the worker.

The worker talks to it in frames. It imports nothing of ours but `model`, because a child must start
fast. `noetl.tools` has the other end of the pipe.
"""
