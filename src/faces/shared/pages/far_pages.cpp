// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/pages/far_pages.hpp"

#include <bit>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "faces/shared/pages/node_pages.hpp"

namespace tailrace::shared {

using exchange::Requests;

Served served_from(NodePages& pages, Bytes page) {
  const int shift = std::countr_zero(static_cast<std::uint64_t>(page));  // a page is a power of 2
  const auto user = [](bool waits) { return waits ? NodePages::User::service : NodePages::User::progress; };
  Served served;
  served.size = [&pages] { return pages.size(); };
  served.raise_size = [&pages](Bytes size) { pages.raise_size(size); };
  served.add_to_size = [&pages](Bytes bytes) { return pages.add_to_size(bytes); };
  served.is_here = [&pages, shift](Bytes offset) { return pages.has(offset >> shift); };
  served.read = [&pages, page, shift, user](Bytes offset, std::span<std::byte> into, bool waits) {
    return pages.read(offset >> shift, offset & (page - 1), into, user(waits));
  };
  served.write = [&pages, page, shift, user](Bytes offset, std::span<const std::byte> bytes, bool waits) {
    pages.raise_size(offset + std::ssize(bytes));
    return pages.write(offset >> shift, offset & (page - 1), bytes, user(waits));
  };
  return served;
}

FarPages::FarPages(exchange::ProgressEngine& progress, Requests::Peers peers, std::uint64_t epoch,
                   executor::Threads& threads, Served served)
    : served_(std::move(served)),
      requests_(progress, std::move(peers), epoch, threads, "pages of a shared file",
                {.at_once = served_.at_once,
                 .tell = served_.size,
                 .hear = served_.raise_size,
                 .is_quick = [this](Unpacker& pieces) { return is_here(pieces); },
                 .serve = [this](Unpacker& pieces, bool waits,
                                 Requests::Answer& answer) { return serve(pieces, waits, answer); },
                 .wake = served_.wake,
                 .help = served_.help}) {}

// A message has pieces of work. Each is packed as its What, the offset, and the bytes to write or the number
// of bytes to read or to add to the size.

void FarPages::write(int rank, Bytes offset, std::span<const std::byte> bytes) {
  requests_.change(rank, [&](Packer& out) { out.put(What::write).put(offset).put_bytes(bytes); });
}

Status FarPages::read(std::span<const FarRead> reads) {
  std::map<int, std::vector<const FarRead*>> by_rank;
  for (const FarRead& each : reads) by_rank[each.rank].push_back(&each);
  std::map<int, std::uint64_t> questions;
  for (const auto& [rank, list] : by_rank) {
    questions[rank] = requests_.ask(rank, [&](Packer& out) {
      for (const FarRead* each : list) out.put(What::read).put(each->offset).put(std::ssize(each->into));
    });
  }
  Status first;
  for (const auto& [rank, list] : by_rank) {
    const Result<ByteVector> answer = requests_.answer_to(questions[rank]);
    first = first_cause(first, answer.status());
    if (!answer.is_ok()) continue;
    std::size_t at = 0;
    for (const FarRead* each : list) {
      std::memcpy(each->into.data(), answer->data() + at, each->into.size());
      at += each->into.size();
    }
  }
  return first;
}

Result<Bytes> FarPages::add_to_size(Bytes bytes) {
  const std::uint64_t question =
      requests_.ask(0, [&](Packer& out) { out.put(What::grow).put(Bytes{0}).put(bytes); });
  const Result<ByteVector> answer = requests_.answer_to(question);
  TR_TRY(answer.status());
  return Unpacker(*answer).get<Bytes>();
}

bool FarPages::is_here(Unpacker& pieces) const {
  const auto what = pieces.get<What>();
  const auto offset = pieces.get<Bytes>();
  if (what == What::write)
    pieces.get_bytes();
  else
    pieces.get<Bytes>();
  return what == What::grow || served_.is_here(offset);
}

bool FarPages::serve(Unpacker& pieces, bool waits, Requests::Answer& answer) const {
  const auto what = pieces.get<What>();
  const auto offset = pieces.get<Bytes>();
  const Status done = what == What::write
                          ? served_.write(offset, pieces.get_bytes(), waits)
                          : serve_read(what, offset, pieces.get<Bytes>(), waits, answer.values);
  if (!done.is_ok() && served_.is_to_wait(done)) return false;
  Status& outcome = what == What::write ? answer.changed : answer.got;
  outcome = first_cause(outcome, done);
  return true;
}

/// Reads bytes, or adds to the file's size. Appends the bytes, or the size before, to `values`.
Status FarPages::serve_read(What what, Bytes offset, Bytes bytes, bool waits, ByteVector& values) const {
  const std::size_t at = values.size();
  values.resize(at + (what == What::read ? static_cast<std::size_t>(bytes) : sizeof(Bytes)));
  if (what == What::read) return served_.read(offset, std::span(values).subspan(at), waits);
  const Result<Bytes> before = served_.add_to_size(bytes);
  TR_TRY(before.status());
  std::memcpy(values.data() + at, &*before, sizeof *before);
  return {};
}

}  // namespace tailrace::shared
