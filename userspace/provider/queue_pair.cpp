// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Life of the core's part of a queue pair, and the C entries for posting.
#include "queue_pair.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <new>

bool shca_ring_is_sound(const shca_ring_map *map, size_t header_size, size_t payload_size)
{
	if (map->entries == 0) {
		return true;
	}
	return map->base != nullptr && std::has_single_bit(map->entries) && map->stride % 8 == 0 &&
	       map->stride >= header_size && map->stride - header_size >= payload_size &&
	       map->length >= SHCA_RING_ENTRIES_OFFSET &&
	       (map->length - SHCA_RING_ENTRIES_OFFSET) / map->stride >= map->entries;
}

shca_qp *shca_core_qp_create(const shca_qp_config *config)
{
	const ibv_qp_cap &cap = config->cap;
	size_t sges = size_t{cap.max_send_sge} * sizeof(shca::wire::Sge);
	size_t send_payload = sges > cap.max_inline_data ? sges : cap.max_inline_data;
	size_t recv_payload = size_t{cap.max_recv_sge} * sizeof(shca::wire::Sge);

	if (!shca_ring_is_sound(&config->sq, sizeof(shca::wire::SendWqe), send_payload) ||
	    !shca_ring_is_sound(&config->rq, sizeof(shca::wire::RecvWqe), recv_payload)) {
		errno = EPROTO;
		return nullptr;
	}
	// malloc() and not new: the exceptions of operator new stay out of the library.
	void *memory = std::malloc(sizeof(shca_qp));
	return memory != nullptr ? new (memory) shca_qp(*config) : nullptr;
}

void shca_core_qp_destroy(shca_qp *qp)
{
	qp->~shca_qp();
	std::free(qp);
}

int shca_core_post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad_wr)
{
	return shca::core_of(qp).sq.post(wr, bad_wr);
}

int shca_core_post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return shca::core_of(qp).rq.post(wr, bad_wr);
}

int shca_core_bind_mw(ibv_qp *qp, ibv_mw *mw, ibv_mw_bind *bind)
{
	return shca::core_of(qp).sq.bind(mw, *bind);
}
