/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * siw ADDRESS: two ends of a connection in one process; one sends with invalidate,
 * by the key of a region of the other. One line about how that ends. The work request's
 * wr.rdma.rkey is 0, so that a provider which takes the key from there is told from one
 * that does not. Judges nothing: scripts/check-rdma-core knows the answer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7471"
#define SIZE 4096

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buf[SIZE];
};

static struct end server, client;
static struct rdma_cm_id *listener;

static void die(const char *what)
{
	printf("failed: %s: %m\n", what);
	exit(1);
}

static struct rdma_cm_id *endpoint(const char *address, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(address, PORT, &hints, &info))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, info, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

static void reg(struct end *end)
{
	end->mr = ibv_reg_mr(end->id->pd, end->buf, SIZE,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!end->mr)
		die("ibv_reg_mr");
}

static void *serve(void *arg)
{
	if (rdma_get_request(listener, &server.id))
		die("rdma_get_request");
	reg(&server);
	if (rdma_post_recv(server.id, NULL, server.buf, SIZE, server.mr))
		die("rdma_post_recv");
	if (rdma_accept(server.id, NULL))
		die("rdma_accept");
	return arg;
}

static const char *completion(struct ibv_cq *cq, struct ibv_wc *wc)
{
	time_t end = time(NULL) + 5;
	int ret;

	while (!(ret = ibv_poll_cq(cq, 1, wc)) && time(NULL) < end)
		usleep(1000);
	return ret > 0 ? ibv_wc_status_str(wc->status) : "not complete";
}

int main(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "10.77.0.1";
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND_WITH_INV, .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	struct ibv_wc wc = {};
	pthread_t thread;

	alarm(40);
	listener = endpoint(address, RAI_PASSIVE);
	if (rdma_listen(listener, 1))
		die("rdma_listen");
	if (pthread_create(&thread, NULL, serve, NULL))
		die("pthread_create");
	client.id = endpoint(address, 0);
	reg(&client);
	if (rdma_connect(client.id, NULL))
		die("rdma_connect");
	pthread_join(thread, NULL);

	sge = (struct ibv_sge){(uintptr_t)client.buf, 64, client.mr->lkey};
	send.sg_list = &sge;
	send.invalidate_rkey = server.mr->rkey;
	if (ibv_post_send(client.id->qp, &send, &bad))
		die("ibv_post_send");
	printf("send %s", completion(client.id->send_cq, &wc));
	printf(", receive %s\n", completion(server.id->recv_cq, &wc));
	/* What the two ends hold may be in any state by now. */
	fflush(stdout);
	_exit(0);
}
