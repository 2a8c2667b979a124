# SPDX-License-Identifier: GPL-2.0
"""A daemon that is measured: what contrib/memcached/measure and contrib/coturn/measure share."""

import os
import resource
import socket
import subprocess
import time


def raise_limit():
    """Allow as many descriptors as possible, here and in daemons. Returns the limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Daemon:
    def __init__(self, command, log):
        with open(log, 'w', encoding='utf-8') as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def wait_for(self, ready):
        """Until ready() does not raise OSError."""
        for _ in range(600):
            try:
                return ready()
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit('the daemon has ended') from None
                time.sleep(0.1)
        raise SystemExit('the daemon does not answer')

    def cpu(self):
        """The CPU time of each of its threads in ns, by name; threads of a name are added."""
        times = {}
        for task in os.listdir(f'/proc/{self.process.pid}/task'):
            path = f'/proc/{self.process.pid}/task/{task}'
            with open(f'{path}/comm', encoding='utf-8') as file:
                name = file.read().strip()
            with open(f'{path}/schedstat', encoding='ascii') as file:
                times[name] = times.get(name, 0) + int(file.read().split()[0])
        return times
