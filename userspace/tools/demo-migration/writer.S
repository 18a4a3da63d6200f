/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The whole firmware of the guest that is migrated while it runs: 64 KiB of ROM that
 * walks over a range of pages and changes the first and the last word of each, for
 * ever: the first page of each MiB, then the second of each, and so on, so that every
 * MiB is written to all the time, before it is registered and after. It touches no
 * other memory but its orders, so that the rest of the guest's RAM is what the
 * demonstration made of it.
 *
 * Orders, three words at ORDERS: address of the first page; number of pages, which are
 * 2 to the power of MIBS_SHIFT MiB; loops to wait after each page. What it writes is
 * the number of pages written so far, the one that is written included. No page is
 * written without pause: under TCG, QEMU's log of dirty pages can miss the last writes
 * to one that is.
 */
#define ORDERS		0x1000
#define ROM_BASE	0xffff0000
#define PAGE_SHIFT	12
#define MIB_SHIFT	20
#define MIBS_SHIFT	4
#define LAST_WORD	4092

	.text
	.code16
start:
	cli
	lgdtl	%cs:gdt_register - start
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmpl	$8, $ROM_BASE + (protected - start)

	.code32
protected:
	movl	$16, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$ORDERS, %ebx
	xorl	%esi, %esi
	xorl	%eax, %eax
next:
	movl	%esi, %edi
	andl	$(1 << MIBS_SHIFT) - 1, %edi
	shll	$MIB_SHIFT, %edi
	movl	%esi, %edx
	shrl	$MIBS_SHIFT, %edx
	shll	$PAGE_SHIFT, %edx
	addl	%edx, %edi
	addl	0(%ebx), %edi
	incl	%eax
	movl	%eax, 0(%edi)
	movl	%eax, LAST_WORD(%edi)
	movl	8(%ebx), %ecx
wait:
	pause
	decl	%ecx
	jnz	wait
	incl	%esi
	cmpl	4(%ebx), %esi
	jb	next
	xorl	%esi, %esi
	jmp	next

	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9a000000ffff	/* 8: code, flat */
	.quad	0x00cf92000000ffff	/* 16: data, flat */
gdt_register:
	.word	gdt_register - gdt - 1
	.long	ROM_BASE + (gdt - start)

	/* Where an x86 processor begins, 16 bytes below 4 GiB. */
	.org	0xfff0
	.code16
	jmp	start
	.org	0x10000
