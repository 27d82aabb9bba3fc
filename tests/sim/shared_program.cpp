// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "shared_program.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {

using shared::SharedFile;

namespace {

/// Returns a rank's own dice, so that the rank does the same in each schedule.
Scheduler dice_of(std::uint64_t seed, int rank) {
  return Scheduler(seed * 1'000'003 + static_cast<std::uint64_t>(rank));
}

template <typename T>
void shuffle(std::vector<T>& list, Scheduler& dice) {
  for (std::size_t i = list.size(); i > 1; --i)
    std::swap(list[i - 1], list[static_cast<std::size_t>(dice.random(0, static_cast<std::int64_t>(i) - 1))]);
}

}  // namespace

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

bool Hearing::collective(int rank, const std::string& call, const Status& status) {
  said_[static_cast<std::size_t>(rank)].push_back({call, status.is_ok() ? "" : status.text()});
  failed_ = failed_ || !status.is_ok();
  return status.is_ok();
}

bool Hearing::local(const Status& status) {
  failed_ = failed_ || !status.is_ok();
  local_failed_ = local_failed_ || !status.is_ok();
  return status.is_ok();
}

int Hearing::failures() const {
  return static_cast<int>(
      std::ranges::count_if(said_.front(), [](const Said& each) { return !each.text.empty(); }));
}

std::vector<std::string> Hearing::disagreements() const {
  std::vector<std::string> found;
  for (std::size_t rank = 1; rank < said_.size(); ++rank) {
    const std::size_t both = std::min(said_[rank].size(), said_.front().size());
    for (std::size_t i = 0; i < both; ++i) {
      const Said& here = said_[rank][i];
      const Said& there = said_.front()[i];
      if (here.text == there.text && here.call == there.call) continue;
      found.push_back(cat("call ", i, ": rank ", rank, " ", here.call, " '", here.text, "', rank 0 ",
                          there.call, " '", there.text, "'"));
      break;
    }
  }
  return found;
}

/// One rank on its way through the program.
struct SharedProgram::Course {
  SessionRank& rank;
  Hearing& hearing;
  Scheduler dice;
  File file;
  [[nodiscard]] std::string who() const { return cat("rank ", rank.rank(), ": "); }
};

SharedProgram::SharedProgram(std::uint64_t seed, const Size& size)
    : seed_(seed), size_(size), is_resized_(static_cast<std::size_t>(size.phases), char{0}) {
  Scheduler dice(seed * 2'750'159);
  for (int number = 0; number < size.phases; ++number) {
    Phase phase;
    phase.kind = number == 0 ? Kind::pieces : static_cast<Kind>(dice.random(0, 2));
    phase.end = static_cast<End>(dice.random(0, 2));
    phase.piece = dice.random(1, size.piece);
    // Pieces that lie side by side belong to random ranks.
    for (int i = 0; i < size.pieces * size.ranks; ++i)
      phase.owners.push_back(static_cast<int>(dice.random(0, size.ranks - 1)));
    phase.size = dice.random(0, 2 * size.pieces * size.ranks * size.piece / 3);
    phases_.push_back(std::move(phase));
  }
}

void SharedProgram::run(SessionRank& rank, Hearing& hearing, int last) {
  Course course{rank, hearing, dice_of(seed_, rank.rank()), nullptr};
  int made = 0;
  const auto may_go_on = [&] { return last < 0 || made++ < last; };
  const auto group = rank.group(rank.session().topology().roster().compute_transport);
  if (!hearing.collective(rank.rank(), "group", group.status())) return;
  if (!may_go_on()) return;
  Result<File> file = SharedFile::open(
      *group, "open", shared::Definition{path, *shared::read_mode("w+"), 4096, size_.memory, {}});
  if (!hearing.collective(rank.rank(), "open", file.status())) return;
  course.file = std::move(*file);
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Phase& phase = phases_[i];
    phase.kind == Kind::appends ? append(course, phase) : write(course, phase);
    if (!may_go_on()) return;
    const bool ended = hearing.collective(rank.rank(), cat("end of phase ", i), end(*course.file, phase));
    if (phase.end == End::resize && ended && is_resized_[i] == 0) {
      content_.resize(static_cast<std::size_t>(phase.size), '\0');
      is_resized_[i] = 1;
    }
    read(course);
    if (!may_go_on()) return;
    hearing.collective(rank.rank(), cat("reading of phase ", i), course.file->sync());
    if (course.dice.once_in(8)) rank.compute(course.dice.random(1, 1'000'000));
    if (!may_go_on()) return;
    // After this flush, too, no bytes that were written over may come back from storage.
    hearing.collective(rank.rank(), cat("flush of phase ", i),
                       i % 2 == 0 ? course.file->flush() : course.file->sync());
  }
  if (!may_go_on()) return;
  hearing.collective(rank.rank(), "close", course.file->close());
}

Status SharedProgram::end(SharedFile& file, const Phase& phase) const {
  if (phase.end == End::flush) return file.flush();
  return phase.end == End::sync ? file.sync() : file.resize(phase.size);
}

void SharedProgram::put(Bytes offset, std::span<const std::byte> bytes) {
  const std::size_t end = static_cast<std::size_t>(offset) + bytes.size();
  if (content_.size() < end) content_.resize(end, '\0');
  std::memcpy(content_.data() + offset, bytes.data(), bytes.size());
}

void SharedProgram::write(Course& course, const Phase& phase) {
  std::vector<Bytes> mine;
  for (std::size_t i = 0; i < phase.owners.size(); ++i) {
    if (phase.owners[i] == course.rank.rank()) mine.push_back(static_cast<Bytes>(i) * phase.piece);
  }
  shuffle(mine, course.dice);
  for (const Bytes offset : mine) {
    write_piece(course, offset, phase.piece);
    if (phase.kind == Kind::rewrites || course.dice.once_in(8)) {
      const Bytes from = course.dice.random(0, phase.piece - 1);
      write_piece(course, offset + from, course.dice.random(1, phase.piece - from));
    }
    if (!course.dice.once_in(6)) continue;
    std::vector<std::byte> back(static_cast<std::size_t>(phase.piece));
    const shared::Sink sinks[] = {{back, offset}};
    compare(course, offset, back, course.file->read(sinks), "its own");
  }
}

void SharedProgram::write_piece(Course& course, Bytes offset, Bytes length) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(length));
  for (std::byte& each : bytes) each = static_cast<std::byte>(course.dice.random(0, 255));
  SharedFile& file = *course.file;
  Status status;
  if (course.dice.once_in(3)) {
    status = file.seek(offset, shared::Whence::begin).status();
    if (status.is_ok()) status = file.write_here(bytes);
  } else {
    const std::span<const std::byte> whole = bytes;
    const auto half = static_cast<std::size_t>(length / 2);
    const shared::Source sources[] = {{whole.first(half), offset},
                                      {whole.subspan(half), offset + static_cast<Bytes>(half)}};
    status = file.write(sources);
  }
  if (course.hearing.local(status)) put(offset, bytes);
}

/// Appends pieces. Their places depend on the schedule, but they must lie behind the bytes that the file had
/// before the phase, and none may overlap another.
void SharedProgram::append(Course& course, const Phase& phase) {
  for (int i = 0; i < size_.pieces; ++i) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(course.dice.random(0, phase.piece)));
    for (std::byte& each : bytes) each = static_cast<std::byte>(course.dice.random(1, 255));
    const Result<Bytes> begin = course.file->append(bytes);
    if (!course.hearing.local(begin.status())) continue;
    const auto from = static_cast<std::size_t>(*begin);
    for (std::size_t at = from; at < std::min(content_.size(), from + bytes.size()); ++at) {
      if (content_[at] == '\0' || course.hearing.failed()) continue;
      course.hearing.wrong(cat(course.who(), "byte ", at, " is appended where something was"));
      break;
    }
    put(*begin, bytes);
  }
}

void SharedProgram::read(Course& course) {
  const auto end = std::ssize(content_);
  const Result<Bytes> size = course.file->size();
  if (course.hearing.local(size.status()) && *size != end && !course.hearing.failed())
    course.hearing.wrong(cat(course.who(), "the size is ", *size, ", not ", end));
  for (int i = 0; i < size_.pieces; ++i) {
    const Bytes offset = course.dice.random(0, end + size_.piece);
    std::vector<std::byte> bytes(static_cast<std::size_t>(course.dice.random(0, 3 * size_.piece)));
    const shared::Sink sinks[] = {{bytes, offset}};
    compare(course, offset, bytes, course.file->read(sinks), "the");
  }
}

/// Compares bytes that were read with those that the file must have. After a failure of any call the file may
/// have any bytes, so nothing is compared.
void SharedProgram::compare(Course& course, Bytes offset, std::span<const std::byte> bytes,
                            const Result<Bytes>& got, const char* whose) {
  if (!course.hearing.local(got.status()) || course.hearing.failed()) return;
  const Bytes there = std::clamp<Bytes>(std::ssize(content_) - offset, 0, std::ssize(bytes));
  if (*got != there)
    return course.hearing.wrong(cat(course.who(), "at ", offset, ": ", *got, " bytes, not ", there));
  for (Bytes i = 0; i < there; ++i) {
    if (static_cast<char>(bytes[static_cast<std::size_t>(i)]) ==
        content_[static_cast<std::size_t>(offset + i)])
      continue;
    return course.hearing.wrong(cat(course.who(), whose, " byte ", offset + i, " is not what was written"));
  }
}

std::string SharedProgram::difference(storage::Target& disk) const {
  const ByteVector found = read_file(disk, path);
  if (found.size() != content_.size())
    return cat("the file has ", found.size(), " bytes, not ", content_.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (static_cast<char>(found[i]) != content_[i]) return cat("byte ", i, " is not what was written");
  }
  return {};
}

/// One rank on its way through the program.
struct GlobalProgram::Course {
  SessionRank& rank;
  Hearing& hearing;
  Scheduler dice;
  std::unique_ptr<shared::GlobalArray> array;
  std::vector<Index> own;  // elements that this rank alone changes in this phase
  [[nodiscard]] std::string who() const { return cat("rank ", rank.rank(), ": "); }
};

GlobalProgram::GlobalProgram(std::uint64_t seed, const Size& size)
    : seed_(seed),
      size_(size),
      content_(static_cast<std::size_t>(size.count), 0),
      is_resized_(static_cast<std::size_t>(size.phases), char{0}) {
  Scheduler dice(seed * 1'618'033);
  Index count = size.count;
  for (int number = 0; number < size.phases; ++number) {
    Phase phase;
    phase.adds = dice.once_in(2);
    phase.run = dice.random(1, 40);
    phase.count = count;
    if (dice.once_in(3)) count = dice.random(1, 2 * size.count);
    phase.next_count = count;
    phases_.push_back(phase);
  }
}

void GlobalProgram::run(SessionRank& rank, Hearing& hearing, int last) {
  Course course{rank, hearing, dice_of(seed_, rank.rank()), nullptr, {}};
  int made = 0;
  const auto may_go_on = [&] { return last < 0 || made++ < last; };
  const auto group = rank.group(rank.session().topology().roster().compute_transport);
  if (!hearing.collective(rank.rank(), "group", group.status())) return;
  if (!may_go_on()) return;
  auto array = shared::GlobalArray::create(*group, "create",
                                           shared::GlobalDefinition{ElementType::i64, size_.count, 4096});
  if (!hearing.collective(rank.rank(), "create", array.status())) return;
  course.array = std::move(*array);
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Phase& phase = phases_[i];
    change(course, phase);
    if (!may_go_on()) return;
    hearing.collective(rank.rank(), cat("changes of phase ", i), course.array->sync());
    look(course, phase.count);
    if (!may_go_on()) return;
    hearing.collective(rank.rank(), cat("looks of phase ", i), course.array->sync());
    if (course.dice.once_in(8)) rank.compute(course.dice.random(1, 1'000'000));
    if (!may_go_on()) return;
    const bool resized =
        hearing.collective(rank.rank(), cat("resizing of phase ", i), course.array->resize(phase.next_count));
    if (resized && is_resized_[i] == 0) content_.resize(static_cast<std::size_t>(phase.next_count), 0);
    is_resized_[i] = 1;
  }
  if (!may_go_on()) return;
  hearing.collective(rank.rank(), "free", course.array->free());
}

void GlobalProgram::change(Course& course, const Phase& phase) {
  course.own.clear();
  const Index runs = (phase.count + phase.run - 1) / phase.run;
  for (Index run = course.rank.rank(); run < runs && std::ssize(course.own) < size_.elements;
       run += size_.ranks) {
    for (Index i = 0; i < phase.run && run * phase.run + i < phase.count; ++i)
      course.own.push_back(run * phase.run + i);
  }
  phase.adds ? add(course, phase) : change_own(course, phase);
}

/// Writes elements of this rank's own, and checks that it reads the new values at once, without a sync.
void GlobalProgram::change_own(Course& course, const Phase& phase) {
  std::vector<Index> own = course.own;
  shuffle(own, course.dice);
  std::vector<Value> values;
  for (const Index index : own) {
    values.push_back(course.dice.random(0, 1'000'000));
    content_[static_cast<std::size_t>(index)] = values.back();
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  course.hearing.local(course.array->scatter(own, bytes));
  if (course.dice.once_in(2)) {
    course.hearing.local(course.array->accumulate(own, bytes, course.dice.once_in(2)));
    for (std::size_t i = 0; i < own.size(); ++i) content_[static_cast<std::size_t>(own[i])] += values[i];
  }
  if (!own.empty() && course.dice.once_in(2)) {
    const Index begin = course.own.front();
    const Index count = std::min(phase.run, phase.count - begin);
    course.hearing.local(course.array->write(begin, count, bytes));
    std::copy_n(values.begin(), count, content_.begin() + begin);
  }
  if (!course.dice.once_in(2)) return;
  std::vector<Value> back(own.size());
  course.hearing.local(course.array->gather(own, reinterpret_cast<std::byte*>(back.data())));
  for (std::size_t i = 0; i < own.size() && !course.hearing.failed(); ++i) {
    if (back[i] == content_[static_cast<std::size_t>(own[i])]) continue;
    course.hearing.wrong(cat(course.who(), "its own element ", own[i], " is ", back[i]));
    break;
  }
}

void GlobalProgram::add(Course& course, const Phase& phase) {
  std::vector<Index> indices;
  std::vector<Value> values;
  for (int i = 0; i < size_.elements; ++i) {
    // Half of the additions go to the first elements, so that ranks add to the same ones.
    const Index last = course.dice.once_in(2) ? phase.count - 1 : std::min<Index>(phase.count - 1, 20);
    indices.push_back(course.dice.random(0, last));
    values.push_back(course.dice.random(-1000, 1000));
    content_[static_cast<std::size_t>(indices.back())] += values.back();
  }
  course.hearing.local(
      course.array->accumulate(indices, reinterpret_cast<const std::byte*>(values.data()), true));
}

void GlobalProgram::look(Course& course, Index count) {
  const auto check = [&](Index index, Value value) {
    if (value == content_[static_cast<std::size_t>(index)] || course.hearing.failed()) return;
    course.hearing.wrong(cat(course.who(), "element ", index, " is ", value, ", not ",
                             content_[static_cast<std::size_t>(index)]));
  };
  std::vector<Index> indices(static_cast<std::size_t>(size_.elements));
  for (Index& each : indices) each = course.dice.random(0, count - 1);
  std::vector<Value> values(indices.size());
  course.hearing.local(course.array->gather(indices, reinterpret_cast<std::byte*>(values.data())));
  for (std::size_t i = 0; i < indices.size(); ++i) check(indices[i], values[i]);
  const Index begin = course.dice.random(0, count - 1);
  values.resize(static_cast<std::size_t>(course.dice.random(1, std::min<Index>(count - begin, 1500))));
  course.hearing.local(
      course.array->read(begin, std::ssize(values), reinterpret_cast<std::byte*>(values.data())));
  for (std::size_t i = 0; i < values.size(); ++i) check(begin + static_cast<Index>(i), values[i]);
}

}  // namespace tailrace::sim
