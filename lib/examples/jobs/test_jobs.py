#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""usage: test_jobs.py

Tests of the example jobs with a PostgreSQL server of their own, in a guest (see stage), as an
ordinary user. Two parents with three workers each, and a wheel each, stand for two machines.
Output is KTAP. Only order, "exactly once" and "not before it is due" count, so a slow guest does
not matter.
"""
import glob
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback

DATA = "/tmp/data"
BIN = glob.glob("/usr/lib/postgresql/*/bin")[0]
HERE = os.path.dirname(os.path.abspath(__file__))
CONNINFO = "host=/tmp dbname=postgres user=user connect_timeout=10"
WORKERS = 3
PATIENCE = 240      # s: longer than anything takes


class Server:
    """PostgreSQL: start() waits until it answers."""

    def start(self):
        self.process = subprocess.Popen(
            [BIN + "/postgres", "-D", DATA, "-k", "/tmp", "-c", "fsync=off", "-c",
             "listen_addresses=", "-c", "log_statement=all", "-c", "shared_buffers=16MB",
             "-c", "log_line_prefix=%a: ", "-c", "jit=off", "-c", "autovacuum=off"],
            stderr=open("/tmp/server.log", "a"))
        while subprocess.run([BIN + "/psql", CONNINFO, "-c", "SELECT"], capture_output=True).returncode:
            assert self.process.poll() is None, open("/tmp/server.log").read()[-2000:]
            time.sleep(0.2)
        self.psql = subprocess.Popen([BIN + "/psql", "-qAtX", CONNINFO + " application_name=test"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop(self):
        """As when the machine crashes."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        self.psql.stdin.close()
        self.psql.wait()

    def __call__(self, sql):
        """The first column of the result, a string for each row."""
        self.psql.stdin.write(sql + ";\n\\echo end of result\n")
        self.psql.stdin.flush()
        lines = []
        while (line := self.psql.stdout.readline()) != "end of result\n":
            assert line, "the connection to the server was lost"
            lines.append(line.rstrip("\n"))
        return lines


class Machine(threading.Thread):
    """A parent with its workers; and the service manager, which starts it again."""

    def __init__(self, *options):
        super().__init__(daemon=True)
        self.options, self.ended = options, False
        self.launch()
        self.start()

    def launch(self):
        self.process = subprocess.Popen([HERE + "/jobs", "-w", str(WORKERS), "-r", "2",
                                         *self.options, CONNINFO],
                                        stderr=open("/tmp/jobs.log", "a"), preexec_fn=self.signals)

    @staticmethod
    def signals():
        """A service manager may start a program with signals ignored and blocked."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    def run(self):
        while True:
            self.process.wait()
            if self.ended:
                return
            time.sleep(0.5)
            self.launch()

    def children(self):
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                return [int(child) for child in file.read().split()]
        except FileNotFoundError:
            return []

    def end(self):
        self.ended = True
        self.process.kill()
        self.join()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def until(condition, what):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE, what
        time.sleep(0.2)


def done(count, ids):
    """Wait until so many jobs are done; each was run once, and not too early."""
    where = f"job IN ({ids})"
    until(lambda: int(server(f"SELECT count(DISTINCT job) FROM runs WHERE {where}")[0]) >= count,
          "a job was not run")
    assert server(f"SELECT job FROM runs WHERE {where} GROUP BY job HAVING count(*) > 1") == []
    assert server(f"SELECT id FROM jobs JOIN runs ON job = id WHERE {where} AND at < due") == []
    assert server(f"SELECT id FROM jobs WHERE id IN ({ids}) AND done IS NULL") == []


def add(count, first, last, payload=0):
    """Jobs that are due from first to last seconds from now. Returns their ids, as a list in SQL."""
    return ",".join(server(
        f"INSERT INTO jobs (due, payload) SELECT clock_timestamp() + interval '1 s' * "
        f"({first} + ({last} - {first}) * n / {count}.0), '{payload}' "
        f"FROM generate_series(1, {count}) n RETURNING id"))


def ready():
    """Wait until all workers are connected and both machines have looked up what is due."""
    connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name <> 'test' AND "
    until(lambda: server(connections + "backend_type = 'client backend'") == [str(2 * (WORKERS + 1))]
          and server(connections + "state = 'idle' AND query = 'COMMIT'") == ["2"],
          "a machine did not start")


def quiet():
    """Wait until nobody has asked the server for longer than a timer's period (-r)."""
    def same():
        size = os.path.getsize("/tmp/server.log")
        time.sleep(3)
        return os.path.getsize("/tmp/server.log") == size
    until(same, "the server is never idle")


def each_job_once():
    """200 jobs: each is run by one worker, when it is due; all machines and workers take part"""
    ready()
    # A job takes a while, so that one worker cannot do them all.
    done(200, add(200, 1, 3, 100))
    workers = server("SELECT DISTINCT worker FROM runs")
    assert len(workers) == 2 * WORKERS, workers


def nobody_polls():
    """while no job is due nobody asks the server for anything, but keeps its timers"""
    quiet()
    for seconds in (12, 40, 160):
        began = time.monotonic()
        ids = add(2, seconds, seconds)
        quiet()         # what was announced is heard
        size = os.path.getsize("/tmp/server.log")
        time.sleep(2)
        with open("/tmp/server.log") as log:
            log.seek(size)
            # psql is quiet, too
            said = log.read()
        # If they are due already this machine is too slow for it.
        if time.monotonic() < began + seconds:
            break
        done(2, ids)
    assert not said, "statements while nothing was due"
    done(2, ids)


def moved_and_deleted():
    """a job that is put off, preferred or deleted: the last word counts"""
    later, sooner, never = [add(1, after, after) for after in (20, 3600, 20)]
    server(f"UPDATE jobs SET due = clock_timestamp() + interval '25 s' WHERE id = {later}")
    server(f"UPDATE jobs SET due = clock_timestamp() + interval '1 s' WHERE id = {sooner}")
    server(f"DELETE FROM jobs WHERE id = {never}")
    done(1, sooner)
    done(1, later)
    assert server(f"SELECT job FROM runs WHERE job = {never}") == []


def looked_up():
    """jobs that nobody announced, as they were due later than in 10 minutes"""
    early = ",".join(server("SET session_replication_role = replica;"
                            "INSERT INTO jobs (due) SELECT clock_timestamp() + interval '7 s' "
                            "FROM generate_series(1, 20) RETURNING id;"
                            "RESET session_replication_role"))
    for machine in machines:
        machine.end()
    machines[:] = [Machine("-l", "4"), Machine("-l", "4")]
    done(20, early)


def worker_killed():
    """a worker is killed while it works: another runs the job, and what it did is undone"""
    ids = add(1, 0, 0, 4000)
    query = "SELECT pid FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()"
    until(lambda: server(query), "nobody works")
    time.sleep(0.5)
    for machine in machines:
        for pid in machine.children():
            kill(pid)
    done(1, ids)


def alive(pid):
    """Neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read() != ""
    except (FileNotFoundError, ProcessLookupError):
        return False


def worker_restarted():
    """one worker is killed: its parent starts another; the parent is killed: its workers end"""
    machine = machines[0]
    until(lambda: len(machine.children()) == WORKERS + 1, "a machine did not start")
    parent, children = machine.process.pid, machine.children()
    kill(children[-1])
    until(lambda: set(machine.children()) - set(children), "the worker was not started again")
    assert machine.process.pid == parent
    children = machine.children()
    kill(parent)
    until(lambda: not any(map(alive, children)), "a worker survived its parent")


def parents_killed():
    """both parents are killed: their jobs are back when they are"""
    ids = add(40, 0, 4)
    for machine in machines:
        kill(machine.process.pid)
    done(40, ids)


def server_restarted():
    """the server crashes and comes back: jobs of before and after"""
    before = add(20, 3, 6, 500)
    time.sleep(1)
    server.stop()
    time.sleep(2)
    server.start()
    done(20, before)
    done(20, add(20, 0, 3))


def anybody_killed():
    """somebody is killed every 400 ms: each job is run once"""
    ids = add(100, 0, 12, 100)
    random.seed(1)
    for number in range(30):
        machine = random.choice(machines)
        pids = machine.children() + ([machine.process.pid] if number % 5 == 0 else [])
        if pids:
            kill(random.choice(pids))
        time.sleep(0.4)
    done(100, ids)


def looked_up_again():
    """a look-up fails: it is done again, long before the next one would be"""
    for machine in machines:
        machine.end()
    ids = add(20, 3, 6)
    server("ALTER FUNCTION microseconds RENAME TO nothing")
    size = os.path.getsize("/tmp/jobs.log")
    machines[:] = [Machine(), Machine()]
    until(lambda: os.path.getsize("/tmp/jobs.log") > size, "the look-up did not fail")
    time.sleep(2)
    server("ALTER FUNCTION nothing RENAME TO microseconds")
    done(20, ids)


def run():
    tests = [each_job_once, nobody_polls, moved_and_deleted, worker_killed, worker_restarted,
             parents_killed, server_restarted, anybody_killed, looked_up, looked_up_again]
    failed = False
    print("TAP version 13")
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        result = "ok"
        try:
            test()
        except Exception:
            failed, result = True, "not ok"
            for line in traceback.format_exc().splitlines():
                print("#", line)
            for line in open("/tmp/jobs.log").read().splitlines()[-10:]:
                print("#", line)
        print(f"{result} {number} {test.__name__}: {test.__doc__}", flush=True)
    return failed


if __name__ == "__main__":
    server = Server()
    server.start()
    with open(HERE + "/jobs.sql") as file:
        server(file.read())
    machines = [Machine(), Machine()]
    status = run()
    for machine in machines:
        machine.end()
    server.stop()
    sys.exit(status)
