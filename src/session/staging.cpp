// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// tr_init allocates the headers and descriptors of the lanes. Their data, most of the staging memory, is
// allocated when a stream is created. Programs that create none leave it to others.
#include "base/log.hpp"
#include "base/text.hpp"
#include "node/available_memory.hpp"
#include "node/huge_pages.hpp"
#include "node/memory_need.hpp"
#include "session/session.hpp"

namespace tailrace::session {

namespace {

/// Each rank tells the others this about the memory that its node shares.
struct StagingShare {
  std::int32_t node = 0;
  Bytes staging = 0;     // of the whole node; 0 if it shares none
  Bytes huge_pages = 0;  // bytes of it that this rank has mapped in huge pages
};

template <typename T>
ByteVector packed(const T& value) {
  Packer out;
  return out.put(value).take();
}

template <typename T>
std::vector<T> unpacked(const std::vector<ByteVector>& contributions) {
  std::vector<T> values;
  for (const ByteVector& each : contributions) values.push_back(Unpacker(each).get<T>());
  return values;
}

}  // namespace

Status Session::open_staging(const std::string& call) {
  if (staging_is_open_) return {};
  // All ranks look before any of them allocates. Afterwards each would miss what the others have taken.
  const Bytes left = memory_->left();
  const node::MemoryNeed mine{my_node(), left, left == 0 ? 0 : node::available_memory()};
  const comm::Verdict asked =
      agree({staging_->take(my_staging()).in(call), cat(call, " asking for staging memory"), packed(mine)});
  Status there = asked.status;
  if (there.is_ok()) {
    there = node::check_nodes(unpacked<node::MemoryNeed>(asked.contributions), "staging takes",
                              "set TAILRACE_STAGING lower")
                .in(call);
  }
  if (!there.is_ok()) staging_->give_back();
  TR_TRY(there);
  if (roster_.self_served) {
    staging_is_open_ = true;
    return {};
  }
  const Status allocated = guarded([&] { return memory_->allocate(); });
  StagingShare share{my_node()};
  // Looked up only if somebody may print it: the kernel walks all page tables to tell about huge pages.
  if (bells_ != nullptr && settings_.huge_pages && logs(LogLevel::info))
    share = {my_node(), memory_->size(), memory_->huge_bytes()};
  const comm::Verdict made = agree({allocated.in(call), cat(call, " making staging memory"), packed(share)});
  if (!made.status.is_ok()) staging_->give_back();
  TR_TRY(made.status);
  staging_is_open_ = true;
  print_huge_pages(made.contributions);
  return {};
}

/// The first compute rank of each node prints, if it logs at this level.
void Session::print_huge_pages(const std::vector<ByteVector>& contributions) const {
  const std::vector<StagingShare> shares = unpacked<StagingShare>(contributions);
  const StagingShare& mine = shares[static_cast<std::size_t>(me_)];
  if (mine.staging == 0) return;
  Bytes huge_pages = 0;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (shares[c].node != mine.node) continue;
    if (static_cast<int>(c) < me_) return;
    huge_pages += shares[c].huge_pages;
  }
  log(LogLevel::info, cat("plan: host ", facts_[static_cast<std::size_t>(world_rank_)].host, ": ",
                          node::huge_page_text(huge_pages, mine.staging, node::huge_page_setting())));
}

}  // namespace tailrace::session
