// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <utility>

#include "faces/restart/recorded.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/flushed.hpp"
#include "ground/journal/sample.hpp"

namespace tailrace::restart {

void put_flushes(Packer& out, const std::vector<SharedFlush>& all) {
  out.put(static_cast<std::int64_t>(all.size()));
  for (const SharedFlush& each : all)
    out.put_text(each.path).put(each.generation).put(each.size).put(each.sample);
}

Result<std::vector<SharedFlush>> get_flushes(Unpacker& in) {
  std::vector<SharedFlush> all;
  auto count = in.get<std::int64_t>();
  bool is_whole = count >= 0;
  for (; count > 0 && in.ok() && is_whole; --count) {
    SharedFlush each;
    each.path = in.get_text();
    each.generation = in.get<std::int64_t>();
    each.size = in.get<Bytes>();
    each.sample = in.get<std::uint64_t>();
    is_whole = in.ok() && !each.path.empty() && each.generation >= 0 && each.size >= 0;
    all.push_back(std::move(each));
  }
  if (!in.ok() || !is_whole) return Status(Code::corrupt, "the flushes of the shared files are damaged");
  return all;
}

namespace {

/// How a file that was left open stands.
void judge_left_open(const SharedFlush& from, const journal::Flushed& last, FlushStanding& standing) {
  standing.is_left_open = true;
  standing.is_there = last.generation == from.generation && last.size == from.size;
  const std::int64_t later = last.generation - from.generation;
  standing.text =
      standing.is_there ? "left open: to be brought back to its last flush, that of the checkpoint"
      : later > 0       ? cat("left open, ", counted(later, "flush", "flushes"),
                              " ahead of the checkpoint: to be brought back to its last flush, nothing leads "
                                    "back further")
                  : "left open by a program that has opened it anew since the checkpoint: to be brought "
                    "back to the last flush of that program, nothing leads back further";
}

/// How a file that is closed, or was brought back, stands: its bytes alone can tell.
Status judge_closed(storage::Target& target, const SharedFlush& from, FlushStanding& standing) {
  const Result<bool> exists = target.exists(from.path);
  TR_TRY(exists.status());
  if (!*exists) {
    standing.text = "is not there";
    return {};
  }
  const Result<std::unique_ptr<storage::File>> file = target.open(from.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  standing.size = *size;
  if (*size == from.size) {
    const Result<std::uint64_t> sample = journal::sample_of(**file, *size);
    TR_TRY(sample.status());
    standing.is_there = from.sample == 0 || *sample == from.sample;
  }
  if (!standing.is_there)
    standing.text = "has other bytes than at its flush before the checkpoint, and nothing leads back there";
  return {};
}

}  // namespace

Result<FlushStanding> standing_of(storage::Target& target, const SharedFlush& from) {
  FlushStanding standing;
  const Result<std::optional<journal::Flushed>> last = journal::read_flushed(target, from.path);
  TR_TRY(last.status());
  if (!*last) {
    TR_TRY(judge_closed(target, from, standing));
    return standing;
  }
  const Result<std::optional<Bytes>> size = storage::size_if_there(target, from.path);
  TR_TRY(size.status());
  standing.size = size->value_or(0);
  judge_left_open(from, **last, standing);
  return standing;
}

}  // namespace tailrace::restart
