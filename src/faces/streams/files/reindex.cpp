// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/reindex.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "formats/index/index.hpp"
#include "formats/listings/listings.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::streams {
namespace {

using codec::FoundRecord;
using storage::File;
using storage::OpenMode;
using storage::Target;
using RecordNames = std::vector<std::pair<std::int32_t, std::int32_t>>;  // field and level

Status not_ours(const std::string& path, const std::string& why) {
  return {Code::state, cat(path, ": ", why,
                           ", and no index beside it tells what it holds; it is left as it is: put its index "
                           "back, move it away, or lose it with existing=overwrite")};
}

/// Returns where the zeros that begin at `at` end. A killed process leaves zeros where it had not written
/// yet.
Result<Bytes> end_of_zeros(File& file, Bytes at, Bytes size) {
  ByteVector piece(64 << 10);
  while (at < size) {
    const auto part = std::span(piece).first(
        static_cast<std::size_t>(std::min<Bytes>(size - at, static_cast<Bytes>(piece.size()))));
    const Result<Bytes> got = file.read(part, at);
    TR_TRY(got.status());
    const auto end = part.begin() + *got;
    const auto byte = std::find_if(part.begin(), end, [](std::byte b) { return b != std::byte{0}; });
    at += byte - part.begin();
    if (byte != end || *got == 0) break;
  }
  return at;
}

/// Adds a record to the step of its lead, or begins the next step.
void add_record(std::vector<IndexStep>& steps, const FoundRecord& found, Bytes at) {
  const IndexRecord record{found.key.field, static_cast<std::int32_t>(found.key.level), at, found.length};
  const auto is_there = [&](const IndexStep& step) {
    return std::any_of(step.records.begin(), step.records.end(), [&](const IndexRecord& each) {
      return each.field == record.field && each.level == record.level;
    });
  };
  if (steps.empty() || steps.back().lead != found.key.lead || is_there(steps.back()))
    steps.push_back({static_cast<std::int64_t>(steps.size()), found.key.lead, at, at, {}});
  steps.back().records.push_back(record);
  steps.back().end = at + found.length;
}

/// Returns the names in order: methods of writing give the records of a step any order.
RecordNames names_of(const IndexStep& step) {
  RecordNames names;
  for (const IndexRecord& record : step.records) names.emplace_back(record.field, record.level);
  std::ranges::sort(names);
  return names;
}

bool is_part_of(const RecordNames& part, const RecordNames& whole) {
  return part.size() < whole.size() && std::ranges::includes(whole, part);
}

/// Returns true if the step has whole fields: a put writes all levels of its field.
bool has_whole_fields(const IndexStep& step, const std::vector<IndexField>& fields) {
  const RecordNames names = names_of(step);
  for (std::size_t i = 0; i < names.size();) {
    const std::int32_t field = names[i].first;
    const std::size_t levels = fields[static_cast<std::size_t>(field)].levels.size();
    for (std::size_t level = 0; level < levels; ++level, ++i) {
      if (i == names.size() || names[i] != std::pair(field, static_cast<std::int32_t>(level))) return false;
    }
  }
  return true;
}

bool has_all_fields(const IndexStep& step, const std::vector<IndexField>& fields) {
  std::size_t records = 0;
  for (const IndexField& field : fields) records += field.levels.size();
  return step.records.size() == records && has_whole_fields(step, fields);
}

/// Returns the bytes of an index that has these steps and is not closed.
Result<ByteVector> encode_index_of(const IndexHeader& header, const std::vector<IndexStep>& steps) {
  TR_TRY(check_header(header));
  ByteVector bytes = encode_header(header);
  IndexChain chain = first_chain(bytes);
  const IndexStep* before = nullptr;
  for (const IndexStep& step : steps) {
    TR_TRY(check_step(header, before, step));
    const ByteVector record = encode_step(step, chain);
    chain = next_chain(chain, record);
    bytes.insert(bytes.end(), record.begin(), record.end());
    before = &step;
  }
  return bytes;
}

enum class LastStep { whole, unfinished, unknown };

LastStep judge_last(const FoundSteps& found, const std::vector<IndexField>& fields) {
  const IndexStep& last = found.steps.back();
  if (has_all_fields(last, fields)) return LastStep::whole;
  const RecordNames names = names_of(last);
  bool like_one = false;
  bool less_than_one = false;
  for (std::size_t i = 0; i + 1 < found.steps.size(); ++i) {
    const RecordNames other = names_of(found.steps[i]);
    like_one = like_one || other == names;
    less_than_one = less_than_one || is_part_of(names, other);
  }
  if (like_one && !less_than_one && !found.torn) return LastStep::whole;
  // Whole fields may be everything that was put at that lead: none of them is cut off.
  if (!like_one && !has_whole_fields(last, fields)) return LastStep::unfinished;
  return LastStep::unknown;
}

}  // namespace

Result<FoundSteps> find_steps(Target& target, const std::string& path, const IndexHeader& header,
                              const codec::Finder* finder) {
  if (finder == nullptr) return not_ours(path, "its format does not show which bytes are this stream's");
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  const codec::ReadBytes read = [&](std::span<std::byte> bytes, Bytes at) {
    return (*file)->read(bytes, at);
  };
  FoundSteps found;
  std::optional<std::int64_t> torn_lead;
  for (Bytes at = 0; at < *size;) {
    Result<FoundRecord> record = finder->find(read, at, *size);
    TR_TRY(record.status());
    if (record->state == FoundRecord::State::none) {
      const Result<Bytes> end = end_of_zeros(**file, at, *size);
      TR_TRY(end.status());
      // A file that begins with zeros is refused, too: nothing of this stream stands before the zeros.
      if (*end == at || at == 0)
        return not_ours(path, cat("byte ", at, " begins no message of this stream as it is defined now"));
      found.torn = true;
      at = *end;
      continue;
    }
    const std::int64_t lead = record->key.lead;
    if (record->has_key && !found.steps.empty() && lead < found.steps.back().lead)
      return not_ours(path, cat("at byte ", at, " its steps go back from ",
                                header.time.at(found.steps.back().lead), " to ", header.time.text(lead)));
    if (record->state == FoundRecord::State::torn) found.torn = true;
    if (found.torn && record->has_key) {
      if (torn_lead && *torn_lead != lead) {
        return Status(Code::corrupt, cat(path, ": the step at ", header.time.at(*torn_lead),
                                         " is damaged, and whole messages of ", header.time.at(lead),
                                         " follow it; it is left as it is"));
      }
      torn_lead = lead;
    }
    if (!found.torn) add_record(found.steps, *record, at);
    at += record->length;
  }
  if (!torn_lead) return found;
  // A torn record belongs to the step that had begun: the steps before it were finished.
  found.last_is_whole = true;
  if (!found.steps.empty() && found.steps.back().lead == *torn_lead &&
      !has_all_fields(found.steps.back(), header.fields))
    found.steps.pop_back();
  return found;
}

Status keep_whole_steps(const std::string& path, const IndexHeader& header, FoundSteps& found) {
  const std::vector<IndexField>& fields = header.fields;
  if (!found.steps.empty() && !found.last_is_whole) {
    const IndexStep& last = found.steps.back();
    switch (judge_last(found, fields)) {
      case LastStep::whole:
        break;
      case LastStep::unfinished:
        found.torn = true;
        found.steps.pop_back();
        break;
      case LastStep::unknown:
        return not_ours(path, cat("the step at ", header.time.at(last.lead), " has ", last.records.size(),
                                  last.records.size() == 1 ? " message" : " messages",
                                  ", and nobody can tell whether it was finished"));
    }
  }
  if (found.steps.empty() && !found.last_is_whole) return not_ours(path, "it has no whole step");
  for (const IndexStep& step : found.steps) {
    if (!has_whole_fields(step, fields))
      return not_ours(path, cat("the step at ", header.time.at(step.lead), " lacks levels of a field"));
  }
  return {};
}

Status write_index(Target& target, const std::string& data_path, const IndexHeader& header,
                   const std::vector<IndexStep>& steps) {
  const std::string path = index_path(data_path);
  const Result<ByteVector> bytes = guarded([&] { return encode_index_of(header, steps); });
  TR_TRY(bytes.status().in(path));
  // The reference file and the listings may tell of other steps.
  TR_TRY(storage::remove_durably(target, references_path(data_path)));
  TR_TRY(listings::cut_all(target, data_path, ranges_of(steps)));
  // The temporary name is that of IndexWriter::create(): what a crash leaves under it goes with the next
  // index of this file, however that comes to be.
  return storage::replace_file(target, path, *bytes, path + ".new");
}

Result<bool> is_empty_or_indexed(Target& target, const std::string& data_path) {
  const Result<std::optional<Bytes>> size = storage::size_if_there(target, data_path);
  TR_TRY(size.status());
  if (size->value_or(0) == 0) return true;
  const Result<bool> indexed = target.exists(index_path(data_path));
  TR_TRY(indexed.status());
  if (!*indexed) return false;
  Result<std::unique_ptr<File>> index = target.open(index_path(data_path), OpenMode::read);
  TR_TRY(index.status());
  std::array<std::byte, kIndexPrefix> prefix{};
  const Result<Bytes> got = (*index)->read(prefix, 0);
  TR_TRY(got.status());
  return decode_run(std::span(prefix).first(static_cast<std::size_t>(*got))).is_ok();
}

}  // namespace tailrace::streams
