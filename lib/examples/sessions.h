/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The common part of the examples of event loops: a server's sessions, each with an idle timeout.
 * Some of them have traffic for a while, which postpones their timeouts. Then all of them become
 * idle and end.
 *
 * Each iteration of an event loop has three steps:
 *
 *	handle the messages of all ready connections (the sessions have none);
 *	call sessions_expire();
 *	while sessions_left(), wait for sessions_fd() and the connections.
 */
#ifndef SESSIONS_H
#define SESSIONS_H

#include <stdbool.h>

/**
 * sessions_start - create a wheel and start all sessions
 * @argc: of main()
 * @argv: of main(): no argument, or "ring" to use an event ring
 */
void sessions_start(int argc, char **argv);

/**
 * sessions_fd - the descriptor to wait for
 *
 * Return: the descriptor.
 */
int sessions_fd(void);

/** sessions_expire - flush the queue, and end the sessions whose timeouts have expired */
void sessions_expire(void);

/**
 * sessions_left - are there sessions or traffic left?
 *
 * Return: false: all have ended.
 */
bool sessions_left(void);

/**
 * sessions_end - free everything and print the results
 *
 * Return: the exit status: 0 on success.
 */
int sessions_end(void);

#endif /* SESSIONS_H */
