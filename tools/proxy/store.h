/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How connections survive the proxy: the service manager keeps their sockets, the wheels with
 * their deadlines, and the pipes with their bytes, and gives all that to the next proxy.
 * README.md has the protocol.
 */
#ifndef PROXY_STORE_H
#define PROXY_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn.h"
#include "loop.h"
#include "options.h"
#include "pipes.h"

/** STORE_BUSY - when to try again while the service manager is busy, ns */
#define STORE_BUSY	(10 * NSEC_PER_MSEC)

/** struct stored - what a service manager gave us at the start */
struct stored {
	/** @listener: a listening socket, -1: none */
	int listener;
	/** @threads: how many wheels there are */
	unsigned int threads;
	/** @wheel: wheel of each thread, -1: none */
	int wheel[THREADS_MAX];
	/** @ledger: ledger of each thread, -1: none */
	int ledger[THREADS_MAX];
};

/**
 * store_collect - see what the service manager gave us ($LISTEN_FDS)
 * @stored: is filled in
 */
void store_collect(struct stored *stored);

/**
 * store_begin - may connections survive this process?
 * @timers: of any thread
 */
void store_begin(struct timers *timers);

/**
 * store_active - may they?
 *
 * Return: true if there is a service manager that keeps descriptors, and timers that can be kept.
 */
bool store_active(void);

/**
 * store_restore - take up the connections that were kept
 * @loops: all threads, none runs yet
 * @n: how many
 *
 * Return: how many connections there are now.
 */
unsigned int store_restore(struct loop **loops, unsigned int n);

/**
 * store_basics - have wheels, ledgers and the listening socket kept
 * @loops: all threads
 * @n: how many
 * @stored: what need not be, since it came from there
 * @listener: the listening socket
 */
void store_basics(struct loop **loops, unsigned int n, const struct stored *stored, int listener);

/**
 * store_pipe - have a pipe kept
 * @pipe: it
 *
 * Return: 0: it will be; -EAGAIN: the service manager is busy; another error.
 */
int store_pipe(const struct pipe *pipe);

/**
 * store_conn - have a connection kept once it is old enough
 * @conn: a new one
 */
void store_conn(struct conn *conn);

/**
 * store_forget - a connection ends
 * @conn: it
 */
void store_forget(struct conn *conn);

/**
 * store_kept - what came from the service manager is still there
 * @n: how many descriptors of connections and pipes
 */
void store_kept(int n);

/**
 * store_turn - send what is old enough to the store
 * @loop: of this thread
 *
 * Return: when to call it again, CLOCK_MONOTONIC, in ns.
 */
uint64_t store_turn(struct loop *loop);

/**
 * store_all - send all that is not there yet, however young
 * @loop: of this thread
 *
 * Return: false: the service manager is busy, call it again.
 */
bool store_all(struct loop *loop);

#endif /* PROXY_STORE_H */
