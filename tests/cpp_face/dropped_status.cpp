// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// With DROP_STATUS this must not compile under -Werror=unused-result; without, it must.
#include <tailrace.hpp>

int main() {
  tr::Stream stream;
  stream.begin(0);
  stream.put("t", nullptr);
#ifdef DROP_STATUS
  stream.end();
#else
  return stream.end().is_ok() ? 0 : 1;
#endif
}
