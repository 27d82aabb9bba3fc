// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/huge_pages.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace tailrace::node {
namespace {

// The text as Linux writes it: a line with addresses, then fields. Other fields begin with letters that
// hexadecimal has.
constexpr const char* smaps =
    "5583c0000000-5583c0400000 rw-p 00000000 00:00 0                          [heap]\n"
    "Size:               4096 kB\n"
    "ShmemPmdMapped:     4096 kB\n"
    "7f00c0000000-7f00c0400000 rw-s 00000000 00:01 2051                       /memfd:tailrace (deleted)\n"
    "Size:               4096 kB\n"
    "FilePmdMapped:      1024 kB\n"
    "ShmemPmdMapped:     2048 kB\n"
    "7f00c0400000-7f00c0800000 rw-s 00400000 00:01 2051                       /memfd:tailrace (deleted)\n"
    "ShmemPmdMapped:     4096 kB\n"
    "7f00c0800000-7f00c0c00000 rw-s 00000000 00:01 2052                       /memfd:other (deleted)\n"
    "ShmemPmdMapped:     4096 kB\n";

TEST(huge_pages, those_of_the_range_are_added_up_and_no_others) {
  std::istringstream text(smaps);
  EXPECT_EQ(huge_bytes_in(text, 0x7f00c0000000, 0x7f00c0800000), Bytes{6144 * 1024});
}

TEST(huge_pages, there_are_none_where_the_kernel_does_not_tell) {
  std::istringstream without("7f00c0000000-7f00c0400000 rw-s 00000000 00:01 2051\nSize: 4096 kB\n");
  EXPECT_EQ(huge_bytes_in(without, 0x7f00c0000000, 0x7f00c0800000), Bytes{0});
  std::istringstream empty("");
  EXPECT_EQ(huge_bytes_in(empty, 0, 1), Bytes{0});
}

TEST(huge_pages, the_text_says_what_was_granted_and_what_would_grant_more) {
  EXPECT_EQ(huge_page_text(4096, 4096, "advise"), "huge pages for 4096 of 4096 bytes of staging");
  EXPECT_EQ(huge_page_text(0, 4096, "never"),
            "huge pages for 0 of 4096 bytes of staging; /sys/kernel/mm/transparent_hugepage/shmem_enabled is "
            "never, advise or always would grant them");
  EXPECT_EQ(
      huge_page_text(2048, 4096, "advise"),
      "huge pages for 2048 of 4096 bytes of staging; /sys/kernel/mm/transparent_hugepage/shmem_enabled is "
      "advise");
}

}  // namespace
}  // namespace tailrace::node
