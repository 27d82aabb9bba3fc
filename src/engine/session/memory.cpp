// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/memory.hpp"

#include <algorithm>
#include <cstring>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/node/available_memory.hpp"
#include "ground/node/huge_pages.hpp"

namespace tailrace::session {

namespace {

constexpr Bytes mebibyte = Bytes{1} << 20;

/// The head of the memory that a node's ranks share. The first rank's lane follows it. An account and bells
/// begin as zeros, as new memory does.
struct NodeHead {
  node::Budget::Account budget;
  node::NodeBells bells;
};

/// A rank's report to the others on the memory that its node shares.
struct StagingShare {
  std::int32_t node = 0;
  Bytes staging = 0;     // that this rank has allocated so far; 0 if its node shares none
  Bytes huge_pages = 0;  // bytes of it that this rank has mapped in huge pages
};

template <typename T>
std::vector<T> unpacked(const std::vector<ByteVector>& contributions) {
  std::vector<T> values;
  for (const ByteVector& each : contributions) values.push_back(Unpacker(each).get<T>());
  return values;
}

}  // namespace

Memory::~Memory() {
  if (budget_ && node_.rank() == 0 && budget_->most() > 0) {
    log(LogLevel::info, cat("memory: host ", topology_.host(), ": of ", size_text(budget_->limit()),
                            ", at most ", budget_->most_text(), " were taken"));
  }
}

/// The smallest node's numbers count on all nodes, since every rank computes the quotas of all.
Status Memory::declare(Settings& settings, bool keeps_steps) {
  const Bytes available = node::available_memory();
  declared_ = session::declare(settings, available, topology_.ranks_on(topology_.node()));
  const comm::Verdict verdict = all_.agree({{}, init_call, Packer().put(declared_).take()});
  TR_TRY(verdict.status);
  for (const Declared& theirs : unpacked<Declared>(verdict.contributions)) {
    declared_.memory = std::min(declared_.memory, theirs.memory);
    declared_.staging = std::min(declared_.staging, theirs.staging);
  }
  settings.io_buffer = io_buffer_of(settings, declared_.memory);
  huge_pages_ = settings.huge_pages;
  quotas_ = cut_staging(topology_.roster(), declared_.staging);
  if (keeps_steps) quotas_.keep_definitions();
  return all_.agree({check_staging(available), init_call, {}}).status;
}

Status Memory::check_staging(Bytes available) const {
  if (declared_.staging > declared_.memory) {
    return {Code::settings,
            cat("TAILRACE_STAGING asks for ", size_text(declared_.staging), " of the ",
                size_text(declared_.memory),
                " that TAILRACE_MEMORY lets the library take on a node: set TAILRACE_STAGING lower")};
  }
  if (declared_.staging > available) {
    return {Code::memory, cat("TAILRACE_STAGING asks for ", declared_.staging, " bytes on host ",
                              topology_.host(), ", where ", available, " are to be had: set it lower")};
  }
  return {};
}

Bytes Memory::lane_size(int rank) const {
  const bool has_lanes = topology_.servers_on(topology_.node()) > 0;
  const std::optional<int> c = has_lanes ? topology_.compute_rank(rank) : std::nullopt;
  return c ? node::lane_bytes(quotas_.lane[static_cast<std::size_t>(*c)]) + quotas_.kept_of(*c) : 0;
}

/// The first rank's part has the account of the budget and the bells. If the node has a server, each compute
/// rank's part has its lane; open_lane() and grow_lane() allocate what is behind the lane's descriptors.
Status Memory::share() {
  const bool has_lanes = topology_.servers_on(topology_.node()) > 0;
  std::vector<Bytes> parts;
  for (const int rank : topology_.ranks_of_node()) parts.push_back(lane_size(rank));
  parts[0] += static_cast<Bytes>(sizeof(NodeHead));
  // Agreements publish descriptors without data, even in programs that create no stream.
  constexpr Bytes at_once = static_cast<Bytes>(sizeof(NodeHead) + sizeof(node::LaneHeader)) +
                            node::descriptor_bytes(node::LaneCut::most_descriptors);
  Result<std::unique_ptr<node::NodeMemory>> memory = node::NodeMemory::create(
      node_, parts, has_lanes && huge_pages_, at_once, {}, node::NodeMemory::Growth::by_any);
  const Status mine = memory.status().at({-1, -1, topology_.world_rank()});
  TR_TRY(all_.agree({mine, init_call, {}}).status);
  memory_ = std::move(*memory);
  last_ = memory_->part(node_.rank() + 1) - memory_->part(node_.rank());
  there_ = std::min(last_, memory_->whole_pages(at_once));
  auto* const head = reinterpret_cast<NodeHead*>(memory_->part(0));
  budget_ = std::make_unique<node::Budget>(head->budget, declared_.memory);
  if (has_lanes) bells_ = &head->bells;
  staging_.emplace(*budget_, node::Use::staging);
  return {};
}

/// Returns the bytes of staging that this rank draws. The compute ranks of a node draw all of its staging in
/// equal parts. If a node has no compute ranks, its servers do.
Bytes Memory::my_staging() const {
  const exchange::Roster& roster = topology_.roster();
  const auto& nodes = topology_.is_server() ? roster.server_node : roster.compute_node;
  return declared_.staging / std::count(nodes.begin(), nodes.end(), topology_.node());
}

/// The compute ranks of a node draw all of it in equal parts, and servers where there are none.
Bytes Memory::share_of_more_lanes() const {
  const exchange::Roster& roster = topology_.roster();
  const auto ranks = std::ranges::count(roster.compute_node, topology_.node());
  const auto servers = std::ranges::count(roster.server_node, topology_.node());
  if (topology_.is_server() && ranks > 0) return 0;
  return more_lanes_on(topology_.node(), roster, quotas_) /
         std::max<std::ptrdiff_t>(ranks > 0 ? ranks : servers, 1);
}

Status Memory::check_more_lanes(Bytes kinds) const {
  const exchange::Roster& roster = topology_.roster();
  for (const int node : roster.server_node) {
    if (std::ranges::count(roster.compute_node, node) > 0) continue;
    const Bytes more = kinds * more_lanes_on(node, roster, quotas_);
    if (declared_.staging + more <= declared_.memory) continue;
    return {Code::memory,
            cat("on a node without compute ranks its servers would take ", size_text(more), " more than the ",
                size_text(declared_.staging), " of its staging, and TAILRACE_MEMORY lets the library take ",
                size_text(declared_.memory))};
  }
  return {};
}

Status Memory::take_staging_without_ranks() {
  const auto& nodes = topology_.roster().compute_node;
  if (std::find(nodes.begin(), nodes.end(), topology_.node()) != nodes.end()) return {};
  return staging_->take(my_staging());
}

std::byte* Memory::lane_of(int node_rank) const {
  return memory_->part(node_rank) + (node_rank == 0 ? sizeof(NodeHead) : 0);
}

Bytes Memory::lane_at() const { return lane_of(node_.rank()) - memory_->part(node_.rank()); }

std::string Memory::staging_for(Bytes needed, Bytes share) const {
  // Shares grow with the whole. A little more is needed, because each is rounded down.
  const double grown = static_cast<double>(declared_.staging) /
                       static_cast<double>(std::max<Bytes>(share, 1)) * static_cast<double>(needed) * 1.001;
  const Bytes whole = static_cast<Bytes>(grown / static_cast<double>(mebibyte)) + 1;
  return cat("TAILRACE_STAGING=", whole, "MiB or more (each node has ", size_text(declared_.staging),
             " now)");
}

Bytes Memory::smallest_workspace() const {
  return *std::min_element(quotas_.workspace.begin(), quotas_.workspace.end());
}

Status Memory::open_staging(const std::string& call, const std::function<comm::Verdict(comm::Vote)>& agree) {
  if (staging_is_open_) return {};
  // All ranks look at the available memory before any of them allocates. Afterwards each would miss what the
  // others have taken.
  const Bytes left = lane_size(topology_.world_rank());
  const node::MemoryNeed mine{topology_.node(), left, left == 0 ? 0 : node::available_memory()};
  const comm::Verdict asked = agree({staging_->take(my_staging()).in(call),
                                     cat(call, " asking for staging memory"), Packer().put(mine).take()});
  Status there = asked.status;
  if (there.is_ok()) {
    there = node::check_nodes(unpacked<node::MemoryNeed>(asked.contributions), "staging takes",
                              "set TAILRACE_STAGING lower")
                .in(call);
  }
  if (!there.is_ok()) staging_->give_back();
  TR_TRY(there);
  if (topology_.roster().self_served) {
    staging_is_open_ = true;
    return {};
  }
  const Status allocated = guarded([&] { return open_lane(); });
  StagingShare share{topology_.node()};
  // Looked up only if somebody may print it: the kernel walks all page tables to tell about huge pages.
  if (bells_ != nullptr && huge_pages_ && logs(LogLevel::info))
    share = {topology_.node(), there_, memory_->huge_bytes()};
  const comm::Verdict made =
      agree({allocated.in(call), cat(call, " making staging memory"), Packer().put(share).take()});
  if (!made.status.is_ok()) staging_->give_back();
  TR_TRY(made.status);
  staging_is_open_ = true;
  print_huge_pages(made.contributions);
  return {};
}

/// Allocates the room for kept definitions, which lies behind the lane's data.
Status Memory::open_lane() {
  if (lane_size(topology_.world_rank()) == 0 || quotas_.kept_of(topology_.me()) == 0) return {};
  const Bytes kept_at = lane_at() + node::lane_bytes(quotas_.lane[static_cast<std::size_t>(topology_.me())]);
  const Bytes begin = std::max(there_, kept_at - kept_at % memory_->whole_pages(1));
  TR_TRY(memory_->add(memory_->part(node_.rank()) + begin, last_ - begin));
  last_ = begin;
  return {};
}

Status Memory::grow_lane(Bytes bytes) {
  const node::LaneCut cut = node::cut_lane(quotas_.lane[static_cast<std::size_t>(topology_.me())]);
  const Bytes data_at = lane_at() + static_cast<Bytes>(sizeof(node::LaneHeader)) + cut.data_at;
  const Bytes to = std::min(memory_->whole_pages(data_at + bytes), last_);
  if (to <= there_) return {};
  const Status grown = memory_->add(memory_->part(node_.rank()) + there_, to - there_);
  if (!grown.is_ok()) {
    return Status(
        grown.code(),
        cat("staging memory: ", size_text(to - there_), " more are not to be had on host ", topology_.host(),
            " (", std::string_view(std::strerror(grown.error_number())), "): set TAILRACE_STAGING lower"),
        grown.error_number());
  }
  there_ = to;
  return {};
}

/// The first compute rank of each node prints, if it logs at this level.
void Memory::print_huge_pages(const std::vector<ByteVector>& contributions) const {
  const std::vector<StagingShare> shares = unpacked<StagingShare>(contributions);
  const StagingShare& mine = shares[static_cast<std::size_t>(topology_.me())];
  if (mine.staging == 0) return;
  Bytes huge_pages = 0, staging = 0;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (shares[c].node != mine.node) continue;
    if (static_cast<int>(c) < topology_.me()) return;
    huge_pages += shares[c].huge_pages;
    staging += shares[c].staging;
  }
  log(LogLevel::info, cat("plan: host ", topology_.host(), ": ",
                          node::huge_page_text(huge_pages, staging, node::huge_page_setting())));
}

}  // namespace tailrace::session
