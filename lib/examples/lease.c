// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * usage: lease
 *
 * Leases with a heartbeat from other processes. A supervisor gives each of its workers a lease,
 * which is a resident timer. A worker renews its lease by a refresh, which is a compare-and-swap in
 * memory; the supervisor need not run for that. If a worker hangs or is dead, its lease ends, and
 * the supervisor gets the event. If a worker was only slow, its next heartbeat reports that its
 * lease has ended.
 *
 * In this example the workers are child processes. Any process that has the descriptor can renew a
 * lease.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <timerwheel.h>

#define WORKERS	3
#define LEASE	300000000ULL		/* ns */
#define BEAT	30000000		/* ns */
#define BEATS	20

static void check(const char *what, long result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, timerwheel_strerror(result));
	exit(1);
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* Worker 1 hangs for longer than its lease, worker 2 exits. */
static int work(int fd, uint64_t number)
{
	struct timerwheel_entry lease = { .key = number };
	struct timerwheel_table table;
	struct timerwheel *wheel;
	int beat, answer;

	check("adopt", timerwheel_adopt(&wheel, fd, true));
	check("table", timerwheel_table(wheel, &table));
	check("get", timerwheel_get(wheel, &lease, 1));
	check("get", lease.result);
	for (beat = 0; beat < BEATS; beat++) {
		answer = timerwheel_table_refresh(&table, lease.index, lease.generation,
						  timerwheel_now(wheel) + LEASE);
		if (answer != TIMERWHEEL_DONE) {
			printf("worker %d: my lease is over\n", (int)number);
			fflush(stdout);
			return 3;
		}
		if (number == 1 && beat == BEATS / 2)
			nap(3 * LEASE);
		if (number == 2 && beat == BEATS / 2)
			kill(getpid(), SIGKILL);
		nap(BEAT);
	}
	/* Give the lease back, so that no event is delivered. */
	answer = timerwheel_table_cancel(&table, lease.index, lease.generation);
	return answer == TIMERWHEEL_DONE ? 0 : 3;
}

int main(void)
{
	struct timerwheel_config config = {
		.backend = TIMERWHEEL_BACKEND_DEVICE, .capacity = WORKERS, .resident = true,
	};
	struct timerwheel_add leases[WORKERS] = { 0 };
	int i, status, ended = 0, kept = 0, told = 0;
	struct timerwheel_event event;
	struct timerwheel *wheel;
	pid_t pid;

	/* If the parent ignores SIGCHLD, this process does, too, and wait() returns no status. */
	signal(SIGCHLD, SIG_DFL);
	check("open", timerwheel_open(&wheel, &config));
	for (i = 0; i < WORKERS; i++) {
		leases[i].key = i;
		leases[i].deadline = LEASE;
	}
	check("add", timerwheel_add(wheel, leases, WORKERS));
	for (i = 0; i < WORKERS; i++) {
		check("add", leases[i].result);
		pid = fork();
		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (!pid)
			_exit(work(timerwheel_share(wheel), i));
	}
	/* Sleep until a lease ends, or for the longest time that a lease can last. */
	while (timerwheel_wait(wheel, &event, 1, 2 * (BEATS * BEAT + LEASE)) == 1) {
		printf("the lease of worker %d has ended\n", (int)event.key);
		ended++;
	}
	while (wait(&status) > 0) {
		kept += WIFEXITED(status) && !WEXITSTATUS(status);
		told += WIFEXITED(status) && WEXITSTATUS(status) == 3;
	}
	timerwheel_close(wheel);
	/* On a slow machine, leases of other workers may also have ended. */
	return ended >= 2 && kept + ended == WORKERS && told == ended - 1 ? 0 : 1;
}
