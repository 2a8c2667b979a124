// SPDX-License-Identifier: GPL-2.0
/* See diag.h. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "diag.h"
#include "log.h"
#include "worker.h"

/* As in the kernel's <net/tcp_states.h>. */
enum tcp_state {
	ESTABLISHED = 1, FIN_WAIT1 = 4, FIN_WAIT2, CLOSE_WAIT = 8, LAST_ACK, LISTEN, CLOSING,
};

static const uint32_t connections = 1U << ESTABLISHED | 1U << FIN_WAIT1 | 1U << FIN_WAIT2 |
				    1U << CLOSE_WAIT | 1U << LAST_ACK | 1U << CLOSING;

/* Operations to compare the port: a condition, its operand, and a jump to the end. */
#define OPS_OF_PORT	3

struct request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 diag;
	struct nlattr attr;
	struct inet_diag_bc_op ops[];
};

static int diag_fd;
/* Number of the last request. Remaining messages of an abandoned list have another number. */
static uint32_t sequence;

/* Fill in the kernel's filter. yes and no are distances; 4 beyond the end means "no match". */
static void fill_ports(struct inet_diag_bc_op *op, const uint16_t *ports, unsigned int nr_ports)
{
	const unsigned int size = OPS_OF_PORT * sizeof(*op);
	unsigned int i;

	for (i = 0; i < nr_ports; i++, op += OPS_OF_PORT) {
		unsigned int left = (nr_ports - i) * size;

		op[0] = (struct inet_diag_bc_op) { INET_DIAG_BC_S_EQ, 2 * sizeof(*op), size };
		op[1].no = ports[i];
		op[2] = (struct inet_diag_bc_op) { INET_DIAG_BC_JMP, sizeof(*op),
						   left - 2 * sizeof(*op) };
		if (i == nr_ports - 1)
			op[0].no = size + sizeof(*op);
	}
}

static bool answers(void (*each)(const struct inet_diag_msg *msg))
{
	static char buffer[65536] __attribute((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *head;
	ssize_t n;

	for (;;) {
		n = recv(diag_fd, buffer, sizeof(buffer), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		for (head = (void *)buffer; NLMSG_OK(head, n); head = NLMSG_NEXT(head, n)) {
			if (head->nlmsg_seq != sequence)
				continue;
			if (head->nlmsg_type == NLMSG_DONE || head->nlmsg_type == NLMSG_ERROR) {
				/* Both messages begin with the result. */
				errno = -*(int *)NLMSG_DATA(head);
				return !errno;
			}
			/* The kernel can take long for a list, but makes progress. */
			worker_step();
			each(NLMSG_DATA(head));
		}
	}
}

static bool dump(int family, uint32_t states, const uint16_t *ports, unsigned int nr_ports,
		 void (*each)(const struct inet_diag_msg *msg))
{
	unsigned int filter = nr_ports * OPS_OF_PORT * sizeof(struct inet_diag_bc_op);
	struct request *request = xcalloc(1, sizeof(*request) + filter);
	bool complete;

	request->head = (struct nlmsghdr) {
		.nlmsg_len = filter ? sizeof(*request) + filter :
				      offsetof(struct request, attr),
		.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.nlmsg_seq = ++sequence,
	};
	request->diag = (struct inet_diag_req_v2) {
		.sdiag_family = family,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = states,
	};
	request->attr = (struct nlattr) { sizeof(request->attr) + filter, INET_DIAG_REQ_BYTECODE };
	fill_ports(request->ops, ports, nr_ports);
	complete = send(diag_fd, request, request->head.nlmsg_len, 0) >= 0 && answers(each);
	if (!complete && errno == ENOENT)
		log_die("this kernel does not list TCP sockets: load the module tcp_diag");
	if (!complete)
		log_seldom(LOG_WARNING, "cannot list TCP connections: sock_diag: %s",
			   strerror(errno));
	free(request);
	return complete;
}

bool diag_connections(const uint16_t *ports, unsigned int nr_ports,
		      void (*each)(const struct inet_diag_msg *msg))
{
	return dump(AF_INET, connections, ports, nr_ports, each) &&
	       dump(AF_INET6, connections, ports, nr_ports, each);
}

bool diag_listeners(void (*each)(const struct inet_diag_msg *msg))
{
	return dump(AF_INET, 1U << LISTEN, NULL, 0, each) &&
	       dump(AF_INET6, 1U << LISTEN, NULL, 0, each);
}

bool diag_waits(const struct inet_diag_msg *msg)
{
	return msg->idiag_state == ESTABLISHED || msg->idiag_state == CLOSE_WAIT;
}

void diag_open(void)
{
	diag_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (diag_fd < 0)
		log_die("cannot list TCP connections: sock_diag: %s", strerror(errno));
}

union address diag_address(const struct inet_diag_msg *msg, bool peer)
{
	const void *from = peer ? msg->id.idiag_dst : msg->id.idiag_src;
	union address address = { };

	address.any.sa_family = msg->idiag_family;
	/* The port is at the same place in both families. */
	address.v4.sin_port = peer ? msg->id.idiag_dport : msg->id.idiag_sport;
	if (msg->idiag_family == AF_INET)
		memcpy(&address.v4.sin_addr, from, sizeof(address.v4.sin_addr));
	else
		memcpy(&address.v6.sin6_addr, from, sizeof(address.v6.sin6_addr));
	address_unmap(&address);
	return address;
}

/* An attribute that follows the socket, NULL: there is none. */
static const void *attribute(const struct inet_diag_msg *msg, unsigned short type)
{
	const struct nlmsghdr *head = (const void *)((const char *)msg - NLMSG_HDRLEN);
	const struct rtattr *attr = (const void *)(msg + 1);
	int left = head->nlmsg_len - NLMSG_LENGTH(sizeof(*msg));

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == type)
			return RTA_DATA(attr);
	}
	return NULL;
}

bool diag_dual(const struct inet_diag_msg *msg)
{
	const uint8_t *v6_only = attribute(msg, INET_DIAG_SKV6ONLY);
	const union address at = diag_address(msg, false);

	if (at.any.sa_family != AF_INET6 || !IN6_IS_ADDR_UNSPECIFIED(&at.v6.sin6_addr))
		return false;
	return !v6_only || !*v6_only;
}

bool diag_transparent(const struct inet_diag_msg *msg)
{
	const struct inet_diag_sockopt *options = attribute(msg, INET_DIAG_SOCKOPT);

	return options && options->transparent;
}

/* The sixth number in the second "Tcp:" line; the first line has the names. */
bool diag_opened(uint64_t *count)
{
	FILE *file = fopen("/proc/net/snmp", "re");
	unsigned long long n;
	char line[1024];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Tcp: %*u %*u %*u %*d %*u %llu", &n) == 1;
	if (file)
		fclose(file);
	if (found)
		*count = n;
	return found;
}
