// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/outcome.hpp"

namespace tailrace::files {

ByteVector pack(const Outcome& outcome) {
  Packer out;
  out.put(outcome.value).put(outcome.error).put_bytes(outcome.data).put_text(outcome.text);
  return out.take();
}

Outcome unpack_outcome(const ByteVector& bytes) {
  Unpacker in(bytes);
  Outcome outcome;
  outcome.value = in.get<std::int64_t>();
  outcome.error = in.get<int>();
  const auto data = in.get_bytes();
  outcome.data.assign(data.begin(), data.end());
  outcome.text = in.get_text();
  return outcome;
}

}  // namespace tailrace::files
