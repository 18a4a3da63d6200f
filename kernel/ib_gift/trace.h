/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoints ib_gift:umem_get, ib_gift:umem_refresh and
 * ib_gift:umem_release: one line for each with the region, the pages that were
 * taken or given back, and how long it took. Each page that is given back was
 * taken before, so over time the lines add up.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_gift

#if !defined(_GIFT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _GIFT_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>

#include "gift.h"

DECLARE_EVENT_CLASS(gift_umem,
		    TP_PROTO(const struct gift_umem *gift,
			     const struct ib_gift_umem_counts *counts, u64 ns),
		    TP_ARGS(gift, counts, ns),
		    TP_STRUCT__entry(__array(char, device, IB_DEVICE_NAME_MAX)
				     __array(u64, pages, IB_GIFT_PAGE_KINDS)
				     __field(u64, addr)
				     __field(u64, length)
				     __field(u64, ns)
				     __field(int, owner)
		    ),
		    TP_fast_assign(strscpy(__entry->device,
					   gift->umem.ibdev->name,
					   IB_DEVICE_NAME_MAX);
				   memcpy(__entry->pages, counts->pages,
					  sizeof(__entry->pages));
				   __entry->addr = gift->umem.address;
				   __entry->length = gift->umem.length;
				   __entry->ns = ns;
				   __entry->owner = gift->tgid;
		    ),
		    TP_printk("device=%s pid=%d addr=0x%llx length=%llu pinned=%llu zero=%llu huge_zero=%llu ksm=%llu shared=%llu file=%llu ns=%llu",
			      __entry->device, __entry->owner, __entry->addr,
			      __entry->length,
			      __entry->pages[IB_GIFT_PAGE_PINNED],
			      __entry->pages[IB_GIFT_PAGE_ZERO],
			      __entry->pages[IB_GIFT_PAGE_HUGE_ZERO],
			      __entry->pages[IB_GIFT_PAGE_KSM],
			      __entry->pages[IB_GIFT_PAGE_SHARED],
			      __entry->pages[IB_GIFT_PAGE_FILE],
			      __entry->ns)
);

/* A region came to be; ns is the time that the whole registration took. */
DEFINE_EVENT(gift_umem, umem_get,
	     TP_PROTO(const struct gift_umem *gift,
		      const struct ib_gift_umem_counts *counts, u64 ns),
	     TP_ARGS(gift, counts, ns)
);

/* Pages of a region were taken again; ns is the time until it was complete. */
DEFINE_EVENT(gift_umem, umem_refresh,
	     TP_PROTO(const struct gift_umem *gift,
		      const struct ib_gift_umem_counts *counts, u64 ns),
	     TP_ARGS(gift, counts, ns)
);

/* A region, or what a refresh has replaced of it, was given back; ns is the time that took. */
DEFINE_EVENT(gift_umem, umem_release,
	     TP_PROTO(const struct gift_umem *gift,
		      const struct ib_gift_umem_counts *counts, u64 ns),
	     TP_ARGS(gift, counts, ns)
);

#endif /* _GIFT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
