// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <istream>
#include <string>

#include "ground/base/types.hpp"

namespace tailrace::node {

/// Returns how many bytes of shared memory a process has mapped in huge pages, in mappings that begin in
/// [from, to). `smaps` is the text of /proc/PID/smaps (proc(5), ShmemPmdMapped). Returns 0 if the kernel does
/// not tell.
Bytes huge_bytes_in(std::istream& smaps, std::uintptr_t from, std::uintptr_t to);

/// Returns to which shared memory the kernel gives huge pages ("never", "advise", ...): the current word of
/// /sys/kernel/mm/transparent_hugepage/shmem_enabled, or "not there" without that file.
std::string huge_page_setting();

/// Returns a text that says how many of the bytes that asked for huge pages have them. If not all have, it
/// also names the kernel's `setting`.
std::string huge_page_text(Bytes granted, Bytes asked, const std::string& setting);

}  // namespace tailrace::node
