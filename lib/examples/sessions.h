/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the examples of event loops have in common: a server's sessions, each with an idle timeout.
 * There is traffic on some of them for a while, which puts their timeouts off; at last all of them
 * are idle, and end.
 *
 * A loop has to do three things, and that is all that differs between them:
 *
 *	when sessions_fd() is readable, and once before the loop: sessions_expire();
 *	at the end of each turn, before it sleeps: sessions_flush();
 *	go on while sessions_left().
 */
#ifndef SESSIONS_H
#define SESSIONS_H

#include <stdbool.h>

/**
 * sessions_start - make a wheel and begin all sessions
 * @argc: of main()
 * @argv: of main(): nothing, or "ring", to have events in mapped memory
 */
void sessions_start(int argc, char **argv);

/**
 * sessions_fd - the descriptor to wait for
 *
 * Return: the descriptor.
 */
int sessions_fd(void);

/** sessions_expire - do what is due */
void sessions_expire(void);

/** sessions_flush - submit what was queued in this turn */
void sessions_flush(void);

/**
 * sessions_left - is there still anything to come?
 *
 * Return: false: all have ended.
 */
bool sessions_left(void);

/**
 * sessions_end - free all, and say how it was
 *
 * Return: the exit status: 0 if all was right.
 */
int sessions_end(void);

#endif /* SESSIONS_H */
