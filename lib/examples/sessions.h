/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The common part of the examples of event loops: a server's sessions, each with an idle timeout.
 * Some of them have traffic for a while, which postpones their timeouts. In the end all of them are
 * idle and end.
 *
 * An event loop has to do three things; only that differs between the examples:
 *
 *	call sessions_expire() when sessions_fd() is readable, and once before the loop;
 *	call sessions_flush() at the end of each iteration, before it sleeps;
 *	continue while sessions_left().
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

/** sessions_expire - take events and end their sessions */
void sessions_expire(void);

/** sessions_flush - submit the operations that were queued in this iteration */
void sessions_flush(void);

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
