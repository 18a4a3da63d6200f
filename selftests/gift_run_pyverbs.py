#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# gift_run_pyverbs.py DEVICE GID-INDEX: an ordinary pyverbs program for gift_run to
# run under gift-run, of which it knows nothing: registers untouched memory, writes
# to it, sends it by RDMA WRITE and prints how many bytes arrived wrong.

import ctypes
import mmap
import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

LENGTH = 16 * 4096
WRITABLE = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE


class Side:
    def __init__(self, context):
        self.cq = CQ(context, 16)
        self.pd = PD(context)
        cap = QPCap(max_send_wr=4, max_recv_wr=4)
        self.qp = QP(
            self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap)
        )
        self.memory = mmap.mmap(-1, LENGTH, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def connect(self, peer, gid, index):
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.qp_access_flags = WRITABLE
        attr.min_rnr_timer, attr.timeout = 12, 14
        attr.retry_cnt = attr.rnr_retry = 7
        route = GlobalRoute(dgid=gid, sgid_index=index)
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route, dlid=1)
        self.qp.to_rts(attr)


def main():
    context = Context(name=sys.argv[1])
    index = int(sys.argv[2])
    gid = context.query_gid(1, index)
    here, there = Side(context), Side(context)
    here.connect(there, gid, index)
    there.connect(here, gid, index)
    mr = MR(here.pd, LENGTH, 0, here.address)
    into = MR(there.pd, LENGTH, WRITABLE, there.address)
    here.memory[5 * 4096 : 6 * 4096] = bytes([0x5A]) * 4096

    wr = SendWR(
        num_sge=1, sg=[SGE(here.address, LENGTH, mr.lkey)], opcode=e.IBV_WR_RDMA_WRITE,
        send_flags=e.IBV_SEND_SIGNALED,
    )
    wr.set_wr_rdma(into.rkey, there.address)
    here.qp.post_send(wr)
    number = 0
    while number == 0:
        number, completions = here.cq.poll()
    wrong = sum(a != b for a, b in zip(here.memory[:], there.memory[:]))
    print(f"status={completions[0].status}")
    print(f"wrong={wrong}")


main()
