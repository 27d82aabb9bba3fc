// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// With DROP_STATUS or DROP_SAVE this must not compile under -Werror=unused-result, and with TEMPORARY_ITEM
// not at all. Without them it must compile.
#include <tailrace.hpp>

namespace {

bool save() {
  tr::Checkpoint checkpoint;
  const double seconds = 1;
#ifdef TEMPORARY_ITEM
  checkpoint.item("seconds", 1.0);
#else
  checkpoint.item("seconds", seconds);
#endif
#ifdef DROP_SAVE
  checkpoint.end();
#endif
  return checkpoint.end().is_ok();
}

}  // namespace

int main() {
  tr::Stream stream;
  stream.begin(0);
  stream.put("t", nullptr);
#ifdef DROP_STATUS
  stream.end();
#else
  return stream.end().is_ok() && save() ? 0 : 1;
#endif
}
