// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint_outputs.hpp"

#include <utility>

namespace tailrace::cli {

Result<Outputs> read_outputs(const ByteVector& bytes) {
  Outputs outputs;
  if (bytes.empty()) return outputs;
  Unpacker in(bytes);
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    Result<streams::Position> position = streams::Position::unpack(in.get_bytes());
    TR_TRY(position.status());
    outputs.streams.push_back(std::move(*position));
  }
  Result<std::vector<files::Position>> files = files::get_positions(in);
  TR_TRY(files.status());
  outputs.files = std::move(*files);
  return outputs;
}

}  // namespace tailrace::cli
