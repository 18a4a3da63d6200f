// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the rules of memory keys as tables, one case a row: who may access,
 * bind and invalidate. Never adds a key to a table; key_table_test.c does.
 */
#include <kunit/test.h>

#include "engine.h"

/* The key and region that every row starts from. */
#define KEY		0x12345678U
#define LKEY		0x00abcd07U
#define BASE		0x10000ULL
#define LENGTH		0x3000ULL

#define LW		IB_ACCESS_LOCAL_WRITE
#define RR		IB_ACCESS_REMOTE_READ
#define RW		IB_ACCESS_REMOTE_WRITE
#define RA		IB_ACCESS_REMOTE_ATOMIC
#define ZB		IB_ZERO_BASED
#define MWB		IB_ACCESS_MW_BIND

/* Compared by address only. */
static const char pd, other_pd;
static const struct shca_qp *qp, *other_qp;

static int key_suite_init(struct kunit_suite *suite)
{
	struct shca_qp *both = kcalloc(2, sizeof(*both), GFP_KERNEL);

	if (!both)
		return -ENOMEM;
	qp = &both[0];
	other_qp = &both[1];
	return 0;
}

static void key_suite_exit(struct kunit_suite *suite)
{
	kfree(qp);
}

/* ---- access ---- */

/**
 * struct permit_row - a key and an access by it
 * @name: what is special about it
 * @kind: of the key
 * @state: of the key
 * @has: access that the key gives
 * @wants: access asked for
 * @remote: asked for by an rkey
 * @differs: bits in which the key asked for differs
 * @other_pd: the QP has another PD
 * @other_qp: the QP is not the one that the window is bound to
 * @addr: first address
 * @length: bytes
 * @permitted: the answer
 */
struct permit_row {
	const char *name;
	enum shca_key_kind kind;
	enum shca_key_state state;
	u32 has;
	u32 wants;
	bool remote;
	u32 differs;
	bool other_pd;
	bool other_qp;
	u64 addr;
	u64 length;
	bool permitted;
};

#define ON(k)		.kind = SHCA_KEY_##k, .state = SHCA_KEY_VALID
#define BY_LKEY(h, w)	.has = h, .wants = w
#define BY_RKEY(h, w)	.has = h, .wants = w, .remote = true
#define AT(a, l)	.addr = a, .length = l
#define ALL		AT(BASE, LENGTH)
#define YES		.permitted = true
#define NO		.permitted = false

static const struct permit_row permit_rows[] = {
	/* An lkey is a region's. */
	{ "region read locally", ON(REGION), BY_LKEY(0, 0), ALL, YES },
	{ "region written locally", ON(REGION), BY_LKEY(LW, LW), ALL, YES },
	{ "read-only region written locally",
	  ON(REGION), BY_LKEY(RR, LW), ALL, NO },
	{ "gift region written locally",
	  ON(REGION), BY_LKEY(BIT(29) | RR, LW), ALL, NO },
	{ "type 1 window used as an lkey",
	  ON(WINDOW_1), BY_LKEY(RR | RW, 0), ALL, NO },
	{ "type 2 window used as an lkey",
	  ON(WINDOW_2), BY_LKEY(RR | RW, 0), ALL, NO },
	{ "type 1 window written by an lkey",
	  ON(WINDOW_1), BY_LKEY(LW | RR | RW, LW), ALL, NO },

	/* The regions of kernel consumers are regions. */
	{ "DMA region written locally", ON(DMA), BY_LKEY(LW, LW), ALL, YES },
	{ "DMA region read remotely", ON(DMA), BY_RKEY(LW | RR, RR), ALL, YES },
	{ "DMA region without remote read", ON(DMA), BY_RKEY(LW, RR), ALL, NO },
	{ "fast-register region written locally",
	  ON(FAST), BY_LKEY(LW, LW), ALL, YES },
	{ "fast-register region read remotely",
	  ON(FAST), BY_RKEY(RR, RR), ALL, YES },
	{ "fast-register region that is not registered", .kind = SHCA_KEY_FAST,
	  .state = SHCA_KEY_FREE, BY_RKEY(RR, RR), ALL, NO },
	{ "fast-register region that is being invalidated",
	  .kind = SHCA_KEY_FAST, .state = SHCA_KEY_DRAINING, BY_RKEY(RR, RR),
	  ALL, NO },

	/* Every remote right by itself. */
	{ "region read remotely", ON(REGION), BY_RKEY(RR, RR), ALL, YES },
	{ "region written remotely", ON(REGION), BY_RKEY(LW | RW, RW), ALL, YES },
	{ "region, atomic", ON(REGION), BY_RKEY(LW | RA, RA), ALL, YES },
	{ "region without remote read", ON(REGION), BY_RKEY(LW | RW | RA, RR),
	  ALL, NO },
	{ "region without remote write", ON(REGION), BY_RKEY(LW | RR | RA, RW),
	  ALL, NO },
	{ "region without remote atomic", ON(REGION), BY_RKEY(LW | RR | RW, RA),
	  ALL, NO },
	{ "region without any right", ON(REGION), BY_RKEY(0, RR), ALL, NO },
	{ "one of two rights is missing", ON(REGION), BY_RKEY(RR, RR | RW),
	  ALL, NO },
	{ "gift region read remotely",
	  ON(REGION), BY_RKEY(BIT(29) | RR, RR), ALL, YES },
	{ "gift region written remotely",
	  ON(REGION), BY_RKEY(BIT(29) | RR, RW), ALL, NO },

	/* Windows. */
	{ "type 1 window read", ON(WINDOW_1), BY_RKEY(RR, RR), ALL, YES },
	{ "type 1 window, another QP of the PD",
	  ON(WINDOW_1), BY_RKEY(RR, RR), ALL, .other_qp = true, YES },
	{ "type 2 window read", ON(WINDOW_2), BY_RKEY(RR, RR), ALL, YES },
	{ "type 2 window, another QP of the PD",
	  ON(WINDOW_2), BY_RKEY(RR, RR), ALL, .other_qp = true, NO },
	{ "type 2 window without that right",
	  ON(WINDOW_2), BY_RKEY(RR, RW), ALL, NO },
	{ "region, another QP of the PD",
	  ON(REGION), BY_RKEY(RR, RR), ALL, .other_qp = true, YES },

	/* Protection domains. */
	{ "region of another PD, remotely",
	  ON(REGION), BY_RKEY(RR, RR), ALL, .other_pd = true, NO },
	{ "region of another PD, locally",
	  ON(REGION), BY_LKEY(LW, LW), ALL, .other_pd = true, NO },
	{ "type 1 window of another PD",
	  ON(WINDOW_1), BY_RKEY(RR, RR), ALL, .other_pd = true, NO },
	{ "type 2 window of another PD",
	  ON(WINDOW_2), BY_RKEY(RR, RR), ALL, .other_pd = true, NO },

	/* The right index is not the key. */
	{ "wrong low 8 bits", ON(REGION), BY_RKEY(RR, RR), ALL,
	  .differs = 0x01, NO },
	{ "wrong low 8 bits, all of them", ON(REGION), BY_RKEY(RR, RR), ALL,
	  .differs = 0xff, NO },
	{ "wrong low 8 bits, locally", ON(REGION), BY_LKEY(LW, LW), ALL,
	  .differs = 0x80, NO },
	{ "wrong low 8 bits, type 2 window", ON(WINDOW_2), BY_RKEY(RR, RR), ALL,
	  .differs = 0x10, NO },
	{ "another index", ON(REGION), BY_RKEY(RR, RR), ALL,
	  .differs = 0x100, NO },

	/* A key that is not valid gives no right. */
	{ "window that is not bound", .kind = SHCA_KEY_WINDOW_2,
	  .state = SHCA_KEY_FREE, BY_RKEY(RR, RR), ALL, NO },
	{ "window that is being invalidated", .kind = SHCA_KEY_WINDOW_2,
	  .state = SHCA_KEY_DRAINING, BY_RKEY(RR, RR), ALL, NO },
	{ "type 1 window that is being bound anew", .kind = SHCA_KEY_WINDOW_1,
	  .state = SHCA_KEY_DRAINING, BY_RKEY(RR, RR), ALL, NO },
	{ "region that is being deregistered", .kind = SHCA_KEY_REGION,
	  .state = SHCA_KEY_DRAINING, BY_RKEY(RR, RR), ALL, NO },

	/* Every edge of the range. */
	{ "first byte", ON(REGION), BY_RKEY(RR, RR), AT(BASE, 1), YES },
	{ "last byte", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE + LENGTH - 1, 1), YES },
	{ "the byte before", ON(REGION), BY_RKEY(RR, RR), AT(BASE - 1, 1), NO },
	{ "the byte after", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE + LENGTH, 1), NO },
	{ "begins a byte too early", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE - 1, LENGTH), NO },
	{ "ends a byte too late", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE, LENGTH + 1), NO },
	{ "ends a byte too late, from within", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE + 1, LENGTH), NO },
	{ "no byte at the end", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE + LENGTH, 0), YES },
	{ "no byte behind the end", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE + LENGTH + 1, 0), NO },
	{ "end wraps around", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE, U64_MAX - BASE + 2), NO },
	{ "end wraps around into the range", ON(REGION), BY_RKEY(RR, RR),
	  AT(BASE + 1, U64_MAX), NO },
	{ "the highest address", ON(REGION), BY_RKEY(RR, RR),
	  AT(U64_MAX, 1), NO },
	{ "address 0", ON(REGION), BY_RKEY(RR, RR), AT(0, 1), NO },
};

static void permit_desc(const struct permit_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(permit, permit_rows, permit_desc);

static void access_permitted(struct kunit *test)
{
	const struct permit_row *row = test->param_value;
	const struct shca_key key = {
		.key = KEY,
		.kind = row->kind,
		.state = row->state,
		.access = row->has,
		.pd = &pd,
		.base = BASE,
		.length = LENGTH,
		.qp = row->kind == SHCA_KEY_WINDOW_2 ? qp : NULL,
	};
	const struct shca_want want = {
		.key = KEY ^ row->differs,
		.access = row->wants,
		.remote = row->remote,
		.pd = row->other_pd ? &other_pd : &pd,
		.qp = row->other_qp ? other_qp : qp,
		.addr = row->addr,
		.length = row->length,
	};

	KUNIT_EXPECT_EQ(test, shca_key_permits(&key, &want), row->permitted);
}

/* The whole address space as one region: no sum overflows. */
static void whole_address_space(struct kunit *test)
{
	const struct shca_key key = {
		.key = KEY,
		.kind = SHCA_KEY_REGION,
		.state = SHCA_KEY_VALID,
		.access = RR,
		.pd = &pd,
		.base = 0,
		.length = U64_MAX,
	};
	struct shca_want want = {
		.key = KEY,
		.access = RR,
		.remote = true,
		.pd = &pd,
		.qp = qp,
	};

	want.addr = U64_MAX - 1;
	want.length = 1;
	KUNIT_EXPECT_TRUE(test, shca_key_permits(&key, &want));
	want.addr = U64_MAX;
	KUNIT_EXPECT_FALSE(test, shca_key_permits(&key, &want));
	want.length = U64_MAX;
	KUNIT_EXPECT_FALSE(test, shca_key_permits(&key, &want));
	want.addr = 0;
	KUNIT_EXPECT_TRUE(test, shca_key_permits(&key, &want));
}

/* ---- binding ---- */

/**
 * struct bind_row - a request to bind
 * @name: what is special about it
 * @kind: of what mw_rkey leads to
 * @state: of that
 * @mr_kind: of what mr_lkey leads to
 * @mr_state: of that
 * @mr_access: of that
 * @access: asked for
 * @mw_differs: bits in which mw_rkey differs from the window's key
 * @new_differs: bits in which the new key differs from the window's key
 * @mr_differs: bits in which mr_lkey differs from the region's key
 * @mw_other_pd: the window has another PD than the QP
 * @mr_other_pd: the region has another PD than the QP
 * @addr: first address
 * @length: bytes
 * @permitted: the answer
 */
struct bind_row {
	const char *name;
	enum shca_key_kind kind;
	enum shca_key_state state;
	enum shca_key_kind mr_kind;
	enum shca_key_state mr_state;
	u32 mr_access;
	u32 access;
	u32 mw_differs;
	u32 new_differs;
	u32 mr_differs;
	bool mw_other_pd;
	bool mr_other_pd;
	u64 addr;
	u64 length;
	bool permitted;
};

#define W1(s)		.kind = SHCA_KEY_WINDOW_1, .state = SHCA_KEY_##s
#define W2(s)		.kind = SHCA_KEY_WINDOW_2, .state = SHCA_KEY_##s
#define FAST(s)		.kind = SHCA_KEY_FAST, .state = SHCA_KEY_##s
#define DMA(s)		.kind = SHCA_KEY_DMA, .state = SHCA_KEY_##s
#define MR(a)		.mr_kind = SHCA_KEY_REGION, .mr_state = SHCA_KEY_VALID, \
			.mr_access = a
#define FULL		(LW | RR | RW | RA | MWB)
#define FOR(a)		.access = a

static const struct bind_row bind_rows[] = {
	/* What is bound. */
	{ "type 2, free", W2(FREE), MR(FULL), FOR(RR), ALL, YES },
	{ "type 2, bound already", W2(VALID), MR(FULL), FOR(RR), ALL, NO },
	{ "type 2, being invalidated", W2(DRAINING), MR(FULL), FOR(RR), ALL, NO },
	{ "type 1, free", W1(FREE), MR(FULL), FOR(RR), ALL, YES },
	{ "type 1, bound already", W1(VALID), MR(FULL), FOR(RR), ALL, YES },
	{ "type 1, being bound by another", W1(DRAINING), MR(FULL), FOR(RR),
	  ALL, NO },
	{ "a region in the window's place", .kind = SHCA_KEY_REGION,
	  .state = SHCA_KEY_VALID, MR(FULL), FOR(RR), ALL, NO },

	/* What it is bound on. */
	{ "on a type 1 window", W2(FREE), .mr_kind = SHCA_KEY_WINDOW_1,
	  .mr_state = SHCA_KEY_VALID, .mr_access = FULL, FOR(RR), ALL, NO },
	{ "on a type 2 window", W2(FREE), .mr_kind = SHCA_KEY_WINDOW_2,
	  .mr_state = SHCA_KEY_VALID, .mr_access = FULL, FOR(RR), ALL, NO },
	{ "on a fast-register region", W2(FREE), .mr_kind = SHCA_KEY_FAST,
	  .mr_state = SHCA_KEY_VALID, .mr_access = FULL, FOR(RR), ALL, YES },
	{ "on a fast-register region that is not registered", W2(FREE),
	  .mr_kind = SHCA_KEY_FAST, .mr_state = SHCA_KEY_FREE,
	  .mr_access = FULL, FOR(RR), ALL, NO },
	{ "a DMA region in the window's place", .kind = SHCA_KEY_DMA,
	  .state = SHCA_KEY_VALID, MR(FULL), FOR(RR), ALL, NO },
	{ "a fast-register region in the window's place", FAST(FREE), MR(FULL),
	  FOR(RR), ALL, NO },
	{ "on a region that is being deregistered", W2(FREE),
	  .mr_kind = SHCA_KEY_REGION, .mr_state = SHCA_KEY_DRAINING,
	  .mr_access = FULL, FOR(RR), ALL, NO },
	{ "on a region without MW_BIND", W2(FREE), MR(FULL & ~MWB), FOR(RR),
	  ALL, NO },
	{ "type 1 on a region without MW_BIND", W1(FREE), MR(FULL & ~MWB),
	  FOR(RR), ALL, NO },

	/* Rights. */
	{ "remote write", W2(FREE), MR(FULL), FOR(RW), ALL, YES },
	{ "remote atomic", W2(FREE), MR(FULL), FOR(RA), ALL, YES },
	{ "every right", W2(FREE), MR(FULL), FOR(RR | RW | RA), ALL, YES },
	{ "no right at all", W2(FREE), MR(FULL), FOR(0), ALL, YES },
	{ "remote read on a region that has no remote right", W2(FREE),
	  MR(MWB), FOR(RR), ALL, YES },
	{ "remote write on a region without local write", W2(FREE),
	  MR(RR | MWB), FOR(RW), ALL, NO },
	{ "remote atomic on a region without local write", W2(FREE),
	  MR(RR | MWB), FOR(RA), ALL, NO },
	{ "type 1, remote write without local write", W1(FREE),
	  MR(RR | MWB), FOR(RR | RW), ALL, NO },
	{ "zero-based", W2(FREE), MR(FULL), FOR(RR | ZB), ALL, YES },
	{ "local write for a window", W2(FREE), MR(FULL), FOR(LW), ALL, NO },
	{ "MW_BIND for a window", W2(FREE), MR(FULL), FOR(MWB), ALL, NO },
	{ "a right that does not exist", W2(FREE), MR(FULL), FOR(BIT(30)),
	  ALL, NO },

	/* Keys. */
	{ "the window by other low 8 bits: its index names it", W2(FREE),
	  MR(FULL), FOR(RR), ALL, .mw_differs = 0xff, YES },
	{ "the region's key is stale", W2(FREE), MR(FULL), FOR(RR), ALL,
	  .mr_differs = 0x01, NO },
	{ "the new key has other low 8 bits", W2(FREE), MR(FULL), FOR(RR), ALL,
	  .new_differs = 0xff, YES },
	{ "the new key is the old one", W2(FREE), MR(FULL), FOR(RR), ALL,
	  .new_differs = 0, YES },
	{ "the new key has another index", W2(FREE), MR(FULL), FOR(RR), ALL,
	  .new_differs = 0x100, NO },
	{ "the new key has another index, far away", W2(FREE), MR(FULL), FOR(RR),
	  ALL, .new_differs = BIT(31), NO },

	/* Protection domains. */
	{ "a window of another PD", W2(FREE), MR(FULL), FOR(RR), ALL,
	  .mw_other_pd = true, NO },
	{ "a region of another PD", W2(FREE), MR(FULL), FOR(RR), ALL,
	  .mr_other_pd = true, NO },
	{ "window and region of another PD", W2(FREE), MR(FULL), FOR(RR), ALL,
	  .mw_other_pd = true, .mr_other_pd = true, NO },
	{ "type 1, a window of another PD", W1(FREE), MR(FULL), FOR(RR), ALL,
	  .mw_other_pd = true, NO },

	/* The range. */
	{ "part of the region", W2(FREE), MR(FULL), FOR(RR),
	  AT(BASE + 0x10, 0x20), YES },
	{ "the last byte", W2(FREE), MR(FULL), FOR(RR),
	  AT(BASE + LENGTH - 1, 1), YES },
	{ "a byte too long", W2(FREE), MR(FULL), FOR(RR),
	  AT(BASE, LENGTH + 1), NO },
	{ "a byte too early", W2(FREE), MR(FULL), FOR(RR),
	  AT(BASE - 1, LENGTH), NO },
	{ "end wraps around", W2(FREE), MR(FULL), FOR(RR),
	  AT(BASE + 1, U64_MAX), NO },
	{ "type 2, no byte", W2(FREE), MR(FULL), FOR(RR), AT(BASE, 0), NO },
	{ "type 1, no byte: unbound", W1(VALID), MR(FULL), FOR(RR),
	  AT(BASE, 0), YES },
	{ "type 1, no byte: no region is needed", W1(VALID), MR(0), FOR(0),
	  AT(0, 0), .mr_differs = 0xff, .mr_other_pd = true, YES },
	{ "type 1, no byte, but a right that does not exist", W1(VALID),
	  MR(FULL), FOR(MWB), AT(BASE, 0), NO },
};

static void bind_desc(const struct bind_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bind, bind_rows, bind_desc);

static void bind_permitted(struct kunit *test)
{
	const struct bind_row *row = test->param_value;
	const struct shca_key window = {
		.key = KEY,
		.kind = row->kind,
		.state = row->state,
		.pd = row->mw_other_pd ? &other_pd : &pd,
	};
	const struct shca_key region = {
		.key = LKEY,
		.kind = row->mr_kind,
		.state = row->mr_state,
		.access = row->mr_access,
		.pd = row->mr_other_pd ? &other_pd : &pd,
		.base = BASE,
		.length = LENGTH,
	};
	const struct shca_bind bind = {
		.pd = &pd,
		.qp = (struct shca_qp *)qp,
		.mw_rkey = KEY ^ row->mw_differs,
		.new_rkey = KEY ^ row->new_differs,
		.mr_lkey = LKEY ^ row->mr_differs,
		.access = row->access,
		.addr = row->addr,
		.length = row->length,
	};

	KUNIT_EXPECT_EQ(test, shca_key_may_bind(&window, &region, &bind),
			row->permitted);
}

/* ---- invalidation ---- */

/**
 * struct invalidate_row - a key that a send with invalidate names
 * @name: what is special about it
 * @kind: of what its index leads to
 * @state: of that
 * @differs: bits in which the key named differs
 * @other_pd: it has another PD than the responder
 * @other_qp: it is bound to another QP
 * @windows: windows that are bound on it
 * @permitted: the answer
 */
struct invalidate_row {
	const char *name;
	enum shca_key_kind kind;
	enum shca_key_state state;
	u32 differs;
	bool other_pd;
	bool other_qp;
	u32 windows;
	bool permitted;
};

static const struct invalidate_row invalidate_rows[] = {
	{ "type 2 window, bound to this QP", W2(VALID), YES },
	{ "type 2 window, never bound or invalid already", W2(FREE), NO },
	{ "type 2 window, being invalidated", W2(DRAINING), NO },
	{ "type 2 window, bound to another QP", W2(VALID), .other_qp = true, NO },
	{ "type 2 window of another PD", W2(VALID), .other_pd = true, NO },
	{ "type 2 window of another PD and QP", W2(VALID), .other_pd = true,
	  .other_qp = true, NO },
	{ "type 1 window, bound", W1(VALID), NO },
	{ "type 1 window, free", W1(FREE), NO },
	{ "type 1 window, being bound anew", W1(DRAINING), NO },
	{ "region of a process", .kind = SHCA_KEY_REGION,
	  .state = SHCA_KEY_VALID, NO },
	{ "region of a process, with a window", .kind = SHCA_KEY_REGION,
	  .state = SHCA_KEY_VALID, .windows = 1, NO },
	{ "fast-register region, registered", FAST(VALID), YES },
	{ "fast-register region, not registered", FAST(FREE), NO },
	{ "fast-register region, being invalidated", FAST(DRAINING), NO },
	{ "fast-register region, a window bound on it", FAST(VALID),
	  .windows = 1, NO },
	{ "fast-register region of another PD", FAST(VALID), .other_pd = true,
	  NO },
	{ "fast-register region, wrong low 8 bits", FAST(VALID),
	  .differs = 0x01, NO },
	{ "DMA region", DMA(VALID), NO },
	{ "DMA region of another PD", DMA(VALID), .other_pd = true, NO },
	{ "wrong low 8 bits: one too many", W2(VALID), .differs = 0x01, NO },
	{ "wrong low 8 bits: the highest of them", W2(VALID),
	  .differs = 0x80, NO },
	{ "another index", W2(VALID), .differs = 0x100, NO },
	{ "key 0", W2(VALID), .differs = KEY, NO },
};

static void invalidate_desc(const struct invalidate_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(invalidate, invalidate_rows, invalidate_desc);

static void invalidate_permitted(struct kunit *test)
{
	const struct invalidate_row *row = test->param_value;
	struct shca_region region = { .windows = row->windows };
	const struct shca_key key = {
		.key = KEY,
		.region = &region,
		.kind = row->kind,
		.state = row->state,
		.access = RR | RW,
		.pd = row->other_pd ? &other_pd : &pd,
		.base = BASE,
		.length = LENGTH,
		.qp = row->kind != SHCA_KEY_WINDOW_2 ? NULL :
		      row->other_qp ? other_qp : qp,
	};

	KUNIT_EXPECT_EQ(test,
			shca_key_may_invalidate(&key, KEY ^ row->differs, &pd,
						qp),
			row->permitted);
}

static struct kunit_case key_cases[] = {
	KUNIT_CASE_PARAM(access_permitted, permit_gen_params),
	KUNIT_CASE(whole_address_space),
	KUNIT_CASE_PARAM(bind_permitted, bind_gen_params),
	KUNIT_CASE_PARAM(invalidate_permitted, invalidate_gen_params),
	{}
};

static struct kunit_suite key_suite = {
	.name = "sample_hca_key",
	.suite_init = key_suite_init,
	.suite_exit = key_suite_exit,
	.test_cases = key_cases,
};

kunit_test_suite(key_suite);
