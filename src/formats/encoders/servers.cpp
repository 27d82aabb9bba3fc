// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/encoders/servers.hpp"

#include "formats/encoders/table.hpp"
#include "ground/base/text.hpp"

namespace tailrace::encoders {

ByteVector OfServers::told() {
  Packer out;
  for (const std::string& name : names()) out.put_text(name);
  return out.take();
}

void OfServers::take(const std::vector<ByteVector>& told, const std::vector<int>& servers) {
  for (const int server : servers) {
    std::set<std::string>& names = names_[server];
    Unpacker in(told[static_cast<std::size_t>(server)]);
    while (in.ok() && !in.rest().empty()) names.insert(in.get_text());
  }
}

Status OfServers::check(const std::string& format) const {
  if (find(format) == nullptr) return {};
  for (const auto& [rank, names] : names_) {
    if (names.count(format) != 0) continue;
    return {Code::settings,
            cat("format=", format, ": rank ", rank,
                ", a server, has no encoder of that name: servers work "
                "inside of tr_init, so that every rank calls tr_encoder_register before tr_init")};
  }
  return {};
}

}  // namespace tailrace::encoders
