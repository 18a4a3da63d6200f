// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of the kinds that differ in what registration does to them, and how
 * much of the machine's memory is in use. Knows nothing of verbs.
 */
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace demo
{

constexpr size_t page_size = 4096;

/* What memory is filled with: any page of it can be told without the memory. */
enum class Pattern : uint32_t {
	zero,
	equal_pages,
	unlike_pages,
};

/* Fills a page as page number index of a memory with this pattern has it. */
void fill_page(void *page, Pattern pattern, size_t index);

/* Memory of one kind; the destructor undoes all that made it so. */
class Memory
{
public:
	virtual ~Memory();
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;

	[[nodiscard]] void *address() const { return address_; }
	[[nodiscard]] size_t length() const { return length_; }
	[[nodiscard]] Pattern pattern() const { return pattern_; }

protected:
	Memory(size_t length, Pattern pattern, int fd);
	void fill();

private:
	void *address_;
	size_t length_;
	Pattern pattern_;
};

/* One kind of memory, and what is true of it. */
struct Kind {
	const char *name;
	std::unique_ptr<Memory> (*make)();
	/* A plain registration has to copy or allocate all of it. */
	bool plain_costs_all;
};

extern const Kind kinds[5];

/* Bytes of anonymous memory in use on the whole machine. */
size_t anonymous_memory_in_use();

} // namespace demo
