// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "file_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "faces/files/cookie.hpp"
#include "faces/files/mode.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::sim {

namespace {

constexpr Bytes element = 8;
constexpr std::array new_modes{"w+", "w+p", "w+s", "w+ps"};
constexpr std::array later_modes{"r+", "r+p", "a", "ap", "r+s", "r+ps", "w", "wp"};

std::uint64_t value_of(int call, Index at) {
  std::uint64_t mixed =
      static_cast<std::uint64_t>(call + 1) * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(at);
  mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9U;
  return mixed ^ mixed >> 32;
}

Index count_of(const std::vector<Index>& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}

/// Returns the bytes that a call writes.
std::string content(const FileCall& call) {
  if (call.kind == FileCall::Kind::text) return call.words;
  std::string bytes(static_cast<std::size_t>(count_of(call.shape) * element), '\0');
  for (Index e = 0; e < count_of(call.shape); ++e) {
    const std::uint64_t value = value_of(call.number, e);
    std::memcpy(bytes.data() + e * element, &value, element);
  }
  return bytes;
}

bool is_async(const std::string& mode) { return mode.find('s') != std::string::npos; }

bool may_read(const std::string& mode) { return mode.find('+') != std::string::npos; }

layout::Layout layout_of(const FileCall& call, int ranks) {
  const auto ranks_of_all = static_cast<std::size_t>(ranks);
  switch (call.layout) {
    case 0:
      return *layout::Layout::block(call.shape, ranks);
    case 1:
      return *layout::Layout::block_cyclic(call.shape, ranks,
                                           std::vector<Index>(call.shape.size(), call.number % 3 + 1));
    case 2:
      return *layout::Layout::replicated(call.shape, ranks);
    default: {
      std::vector<std::vector<Index>> owned(ranks_of_all);
      for (Index e = 0; e < count_of(call.shape); ++e)
        owned[value_of(call.number + 1, e) % ranks_of_all].push_back(e);
      return *layout::Layout::indexed(call.shape, owned);
    }
  }
}

/// Returns the elements that a rank holds in its memory. Of a replicated array it holds all.
std::vector<Index> elements_of(const layout::Layout& layout, int rank) {
  std::vector<Index> elements;
  if (layout.kind() == "replicated") {
    elements.resize(static_cast<std::size_t>(layout.elements()));
    std::iota(elements.begin(), elements.end(), 0);
    return elements;
  }
  for (const layout::Rows& rows : layout.rows(rank)) {
    for (Index row = 0; row < rows.rows; ++row) {
      for (Index i = 0; i < rows.count; ++i) elements.push_back(rows.global + row * rows.stride + i);
    }
  }
  return elements;
}

files::Outcome outcome_of(bool is_done) { return {is_done ? 0 : -1, is_done ? 0 : errno, {}}; }

FileProgram::Said said_of(const files::Outcome& outcome) {
  return {0, outcome.error == 0 ? Code::ok : Code::io, outcome.text};
}

}  // namespace

std::string FileCall::name() const {
  static constexpr std::array names{"open", "write", "read", "text", "seek", "flush", "close"};
  return cat("call ", number, ", ", names[static_cast<std::size_t>(kind)], " ", mode, " of file ", file);
}

void FileModel::put(const std::string& what) {
  if (appends) position = static_cast<Bytes>(bytes.size());
  const auto at = static_cast<std::size_t>(position);
  const std::size_t before = bytes.size();
  if (before < at + what.size()) {
    bytes.resize(at + what.size());
    dirty.resize(at + what.size(), '1');
  }
  bytes.replace(at, what.size(), what);
  const std::size_t first = std::min(at, before);
  std::fill(dirty.begin() + static_cast<std::ptrdiff_t>(first),
            dirty.begin() + static_cast<std::ptrdiff_t>(at + what.size()), '1');
  position += static_cast<Bytes>(what.size());
}

namespace {

FileCall call_of(FileCall::Kind kind, int file) {
  FileCall call;
  call.kind = kind;
  call.file = file;
  return call;
}

}  // namespace

FileProgram::FileProgram(Scheduler& dice, const Size& size) : size_(size) {
  std::vector<int> all(static_cast<std::size_t>(size.ranks));
  std::iota(all.begin(), all.end(), 0);
  for (int file = 0; file < size.files; ++file) {
    std::vector<int> group = all;
    if (!size.all_ranks && dice.once_in(2)) {
      for (std::size_t i = group.size(); i > 1; --i)
        std::swap(group[i - 1],
                  group[static_cast<std::size_t>(dice.random(0, static_cast<std::int64_t>(i) - 1))]);
      group.resize(static_cast<std::size_t>(dice.random(1, size.ranks)));
    }
    groups_.push_back(std::move(group));
  }
  std::map<int, FileModel> files;
  const auto add = [&](FileCall call) {
    call.number = static_cast<int>(calls_.size());
    model(call, files[call.file]);
    calls_.push_back(std::move(call));
  };
  while (static_cast<int>(calls_.size()) < size.calls) {
    const int file = static_cast<int>(dice.random(0, size.files - 1));
    FileModel& now = files[file];
    if (!now.is_open) {
      FileCall call = call_of(FileCall::Kind::open, file);
      call.mode = now.was_open && !dice.once_in(4)
                      ? later_modes[static_cast<std::size_t>(dice.random(0, later_modes.size() - 1))]
                      : new_modes[static_cast<std::size_t>(dice.random(0, new_modes.size() - 1))];
      add(std::move(call));
      continue;
    }
    FileCall call = random_call(dice, static_cast<int>(calls_.size()), file, now);
    const bool reads = call.kind == FileCall::Kind::read;
    const bool writes = call.kind == FileCall::Kind::write || call.kind == FileCall::Kind::text;
    if ((reads && now.last == 'w') || (writes && now.last == 'r')) {
      FileCall between = call_of(FileCall::Kind::seek, file);  // C99 demands a seek here (7.19.5.3)
      between.position = now.position;
      add(std::move(between));
    }
    add(std::move(call));
  }
  for (auto& [file, now] : files) {
    if (now.is_open) add(call_of(FileCall::Kind::close, file));
  }
}

FileCall FileProgram::random_call(Scheduler& dice, int number, int file, const FileModel& now) const {
  FileCall call;
  call.number = number;
  call.file = file;
  const std::int64_t chance = dice.random(1, 100);
  if (chance <= 35) {
    call.kind = FileCall::Kind::write;
    random_array(dice, call);
    call.elements = count_of(call.shape);
  } else if (chance <= 60 && may_read(now.mode)) {
    call.kind = FileCall::Kind::read;
    random_array(dice, call);
    const Bytes there = std::max<Bytes>(static_cast<Bytes>(now.bytes.size()) - now.position, 0);
    call.elements = std::min(count_of(call.shape), there / element);
    call.gives_later = is_async(now.mode);
    for (Index e = 0; e < call.elements; ++e)
      std::memcpy(&call.is.emplace_back(), now.bytes.data() + now.position + e * element, element);
    // An asynchronous read cannot return a smaller count at the file's end, so it would fail: not made.
    if (call.gives_later && call.elements < count_of(call.shape)) return call_of(FileCall::Kind::flush, file);
  } else if (chance <= 75) {
    call.kind = FileCall::Kind::text;
    call.words.assign(static_cast<std::size_t>(dice.random(1, 100)), static_cast<char>('a' + number % 26));
  } else if (chance <= 88) {
    call.kind = FileCall::Kind::seek;
    call.position = dice.random(0, static_cast<std::int64_t>(now.bytes.size()) + (dice.once_in(4) ? 500 : 0));
  } else if (chance <= 95) {
    call.kind = FileCall::Kind::flush;
  } else {
    call.kind = FileCall::Kind::close;
  }
  return call;
}

void FileProgram::random_array(Scheduler& dice, FileCall& call) const {
  Index left = dice.once_in(3) ? size_.elements : std::min<Index>(size_.elements, 60);
  for (std::int64_t dimensions = dice.random(1, 3); dimensions > 0; --dimensions) {
    call.shape.push_back(dice.random(1, std::max<Index>(left, 1)));
    left /= call.shape.back();
  }
  call.layout = static_cast<int>(dice.random(0, 3));
}

void FileProgram::model(const FileCall& call, FileModel& file) {
  switch (call.kind) {
    case FileCall::Kind::open:
      file.is_open = file.was_open = true;
      file.mode = call.mode;
      file.appends = call.mode.front() == 'a';
      file.position = 0;
      if (call.mode.front() == 'w') {
        file.bytes.clear();
        file.dirty.clear();
        file.durable = -1;
      }
      break;
    case FileCall::Kind::write:
    case FileCall::Kind::text:
      file.put(content(call));
      break;
    case FileCall::Kind::read:
      file.position += std::clamp<Bytes>(static_cast<Bytes>(file.bytes.size()) - file.position, 0,
                                         count_of(call.shape) * element);
      break;
    case FileCall::Kind::seek:
      file.position = call.position;
      break;
    case FileCall::Kind::flush:
      file.durable = static_cast<Bytes>(file.bytes.size());
      std::fill(file.dirty.begin(), file.dirty.end(), '0');
      break;
    case FileCall::Kind::close:
      file.is_open = false;
  }
  const bool writes = call.kind == FileCall::Kind::write || call.kind == FileCall::Kind::text;
  file.last = writes ? 'w' : call.kind == FileCall::Kind::read ? 'r' : ' ';
}

std::map<int, FileModel> FileProgram::models(int call) const {
  std::map<int, FileModel> files;
  for (const FileCall& each : calls_) {
    if (call >= 0 && each.number >= call) break;
    model(each, files[each.file]);
  }
  return files;
}

void FileProgram::run(SessionRank& rank, Scheduler& dice, Heard& heard, std::vector<std::string>& wrong,
                      int last) const {
  Files files;
  Readings readings;
  for (const FileCall& call : calls_) {
    if (last >= 0 && call.number > last) return;
    const std::vector<int>& group = ranks_of(call.file);
    if (std::find(group.begin(), group.end(), rank.rank()) == group.end()) continue;
    if (dice.once_in(3))
      rank.fibre().stall(dice.random(0, dice.once_in(10) ? FibreWorld::second : 1'000'000));
    const Said said = make(rank, call, files, readings);
    heard[call.number][rank.rank()] = said;
    if (!said.is(call.elements, Code::ok))
      wrong.push_back(cat("rank ", rank.rank(), ", ", call.name(), ": ", said.value, " of ", call.elements,
                          " elements. ", said.text));
    const bool is_here = call.kind == FileCall::Kind::flush || call.kind == FileCall::Kind::close ||
                         (call.kind == FileCall::Kind::read && !call.gives_later);
    if (!is_here || said.code != Code::ok) continue;
    for (const Reading& each : readings[call.file]) check(each, rank.rank(), wrong);
    readings[call.file].clear();
  }
}

FileProgram::Said FileProgram::make(SessionRank& rank, const FileCall& call, Files& files,
                                    Readings& readings) const {
  if (call.kind == FileCall::Kind::open) {
    const auto group = rank.group(ranks_of(call.file));
    if (!group.is_ok()) return {-1, group.status().code(), group.status().text()};
    auto file = files::File::open({&rank.files(), *group, (*group)->rank()}, path_of(call.file),
                                  *files::parse_mode(call.mode));
    if (!file.is_ok()) return {-1, file.status().code(), file.status().text()};
    files[call.file] = std::move(*file);
    return {};
  }
  const auto found = files.find(call.file);
  if (found == files.end()) return {-1, Code::state};
  files::File& file = *found->second;
  switch (call.kind) {
    case FileCall::Kind::seek:
      return said_of(file.ask("seek", [&](std::FILE* stream) {
        return outcome_of(files::flush_before_seek(stream) == 0 &&
                          std::fseek(stream, static_cast<long>(call.position), SEEK_SET) == 0);
      }));
    case FileCall::Kind::text:
      if (file.mode().async) {
        const Status over = file.before_move("text");
        if (over.is_ok()) file.stream().tell_bytes(std::as_bytes(std::span(call.words)));
        return {0, over.code(), over.text()};
      }
      return said_of(file.ask("text", [&](std::FILE* stream) {
        return outcome_of(std::fwrite(call.words.data(), 1, call.words.size(), stream) == call.words.size());
      }));
    case FileCall::Kind::flush: {
      const Status flushed = file.flush(true);
      return {0, flushed.code(), flushed.text()};
    }
    case FileCall::Kind::close: {
      const Status closed = file.close();
      files.erase(found);
      return {0, closed.code(), closed.text()};
    }
    default:
      return move_array(file, call, readings);
  }
}

FileProgram::Said FileProgram::move_array(files::File& file, const FileCall& call, Readings& readings) const {
  const int me = file.owner().rank;
  const layout::Layout layout = layout_of(call, static_cast<int>(ranks_of(call.file).size()));
  Reading reading{call, {}, elements_of(layout, me)};
  for (const Index e : reading.global)
    reading.memory.push_back(call.kind == FileCall::Kind::write ? value_of(call.number, e) : 0);
  arrays::Array array;
  array.data = reinterpret_cast<std::byte*>(reading.memory.data());
  array.type = ElementType::f64;
  array.layout = &layout;
  array.layout_number = call.number;
  const bool writes = call.kind == FileCall::Kind::write;
  const files::ArrayOutcome outcome = file.move_arrays(
      writes ? "write" : "read", {&array, 1}, writes ? arrays::Direction::write : arrays::Direction::read);
  if (!writes) readings[call.file].push_back(std::move(reading));
  return {outcome.elements, outcome.status.code(), outcome.status.text()};
}

void FileProgram::check(const Reading& reading, int rank, std::vector<std::string>& wrong) {
  for (std::size_t i = 0; i < reading.global.size(); ++i) {
    const auto e = static_cast<std::size_t>(reading.global[i]);
    const std::uint64_t wanted = e < reading.call.is.size() ? reading.call.is[e] : 0;
    // An element of which the file holds only a part may have any value.
    if (e >= reading.call.is.size() || reading.memory[i] == wanted) continue;
    wrong.push_back(
        cat("rank ", rank, ", ", reading.call.name(), ": element ", e, " is ", reading.memory[i]));
    return;
  }
}

namespace {

Result<std::string> contents_of(storage::Target& disk, const std::string& path) {
  Result<std::unique_ptr<storage::File>> file = disk.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  std::string bytes(static_cast<std::size_t>(*size), '\0');
  TR_TRY((*file)->read(std::as_writable_bytes(std::span(bytes)), 0).status());
  return bytes;
}

}  // namespace

std::vector<std::string> FileProgram::differences(storage::Target& disk) const {
  std::vector<std::string> found;
  for (const auto& [number, file] : models()) {
    if (!file.was_open) continue;
    const Result<std::string> bytes = contents_of(disk, path_of(number));
    if (!bytes.is_ok()) {
      found.push_back(bytes.status().text());
      continue;
    }
    if (*bytes == file.bytes) continue;
    const auto at = std::mismatch(bytes->begin(), bytes->end(), file.bytes.begin(), file.bytes.end()).first -
                    bytes->begin();
    found.push_back(cat(path_of(number), " has ", bytes->size(), " bytes in place of ", file.bytes.size(),
                        ", and other ones from ", at, " on"));
  }
  return found;
}

/// Returns the states of the files after the calls that any rank has ended, and one call more, which may have
/// done a part of its work. A flush counts if it has succeeded on any rank.
std::map<int, FileModel> FileProgram::durable_models(const Heard& heard) const {
  std::map<int, FileModel> files;
  std::map<int, bool> is_over;
  for (const FileCall& call : calls_) {
    if (is_over[call.file]) continue;
    const auto said = heard.find(call.number);
    is_over[call.file] = said == heard.end();
    const bool is_done =
        said != heard.end() && std::any_of(said->second.begin(), said->second.end(),
                                           [](const auto& each) { return each.second.code == Code::ok; });
    if (call.kind != FileCall::Kind::flush || is_done) model(call, files[call.file]);
  }
  return files;
}

std::vector<std::string> FileProgram::lost(storage::Target& disk, const Heard& heard,
                                           Bytes& looked_at) const {
  std::vector<std::string> found;
  for (const auto& [number, file] : durable_models(heard)) {
    if (file.durable < 0) continue;
    const Result<std::string> bytes = contents_of(disk, path_of(number));
    if (!bytes.is_ok()) {
      found.push_back(bytes.status().text());
      continue;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(file.durable); ++i) {
      if (file.dirty[i] != '0') continue;
      ++looked_at;
      if (i < bytes->size() && (*bytes)[i] == file.bytes[i]) continue;
      found.push_back(cat(path_of(number), " has lost byte ", i, " of ", file.durable));
      break;
    }
  }
  return found;
}

}  // namespace tailrace::sim
