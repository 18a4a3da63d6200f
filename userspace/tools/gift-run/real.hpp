// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The functions of libibverbs that the library stands in front of.
 */
#pragma once

#include <infiniband/verbs.h>

#include <string>

/* verbs.h makes macros of these, which choose between them. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace giftrun
{

struct Real {
	decltype(&ibv_reg_mr_iova2) reg_mr_iova2;
	decltype(&ibv_rereg_mr) rereg_mr;
	decltype(&ibv_dereg_mr) dereg_mr;
	decltype(&ibv_create_qp) create_qp;
	decltype(&ibv_modify_qp) modify_qp;
	decltype(&ibv_destroy_qp) destroy_qp;
	decltype(&ibv_qp_to_qp_ex) qp_to_qp_ex;
	decltype(&ibv_close_device) close_device;
};

const Real &real();

/* A line on standard error, begun with the tool's name. */
void say(const std::string &what);

} // namespace giftrun
