// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * register_probe PLUGIN: stands in for libibverbs at the moment a provider registers
 * and prints what it hands over. Used by load_test.sh for what no made-up sysfs
 * shows: a device whose driver libibverbs knows by number is announced over
 * netlink, and then the table of every provider is walked without a look at
 * whether there is one.
 */
#include <config.h>
#include <dlfcn.h>
#include <infiniband/driver.h>
#include <stdio.h>

static const struct verbs_device_ops *registered;

/* Found before libibverbs's own, because a program's symbols come first. */
void verbs_register_driver(const struct verbs_device_ops *ops)
{
	registered = ops;
}

int main(int argc, char **argv)
{
	const struct verbs_match_ent *entry;

	if (argc != 2) {
		fprintf(stderr, "usage: register-probe PLUGIN\n");
		return 2;
	}
	if (!dlopen(argv[1], RTLD_NOW)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (!registered) {
		puts("registers nothing");
		return 1;
	}
	printf("name %s\n", registered->name);
	printf("abi %u to %u\n", registered->match_min_abi_version,
	       registered->match_max_abi_version);
	if (!registered->match_table) {
		puts("table none");
		return 0;
	}
	for (entry = registered->match_table; entry->kind != VERBS_MATCH_SENTINEL; entry++)
		printf("entry of kind %d\n", entry->kind);
	puts("table ends");
	return 0;
}
