// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Finds the program to run, and what about it would make the dynamic linker ignore
 * the library without saying so. Runs nothing.
 */
#pragma once

#include <string>

namespace giftrun
{

struct Program {
	std::string path;
	int error = 0; /* an errno: there is none that can be run */
};

/* As execvp() finds it. */
Program find_program(const std::string &name);

/* Why a library cannot be preloaded into it; empty if it can, as far as can be told. */
std::string obstacle(const std::string &path);

} // namespace giftrun
