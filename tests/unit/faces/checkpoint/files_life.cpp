// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/files_life.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "faces/checkpoint/slots.hpp"

namespace tailrace::checkpoint {

std::vector<journal::Position> positions_of(const Copy& copy) {
  Unpacker in(copy.directory.outputs);
  const Result<std::vector<journal::Position>> positions = journal::get_positions(in);
  EXPECT_TRUE(positions.is_ok());
  return *positions;
}

std::int64_t oldest_undo_of(const Copy& copy) {
  return journal::oldest_undo(positions_of(copy), copy.generation());
}

bool is_good(storage::Target& target, const Copy& copy) {
  CopyReader reader(target, copy);
  return reader.check(0).is_ok();
}

Loaded load_newest(storage::Target& target, const std::string& name) {
  const Result<std::vector<std::string>> paths = find_copies(target, name);
  if (!paths.is_ok()) return {};
  for (const Found& found : look_at(target, *paths)) {
    if (found.missing || !found.status.is_ok()) continue;
    Result<Copy> copy = read_copy(target, found.path);
    if (!copy.is_ok() || !is_good(target, *copy)) continue;
    if (!copy->header.committed) (void)commit_copy(target, *copy).is_ok();
    Result<std::vector<journal::UndoName>> undo = journal::find_undo_files(target, name);
    EXPECT_TRUE(undo.is_ok());
    std::erase_if(*undo,
                  [&](const journal::UndoName& each) { return each.generation < oldest_undo_of(*copy); });
    return {copy->generation(), found.path, positions_of(*copy), *undo};
  }
  return {};
}

ByteVector all_of(storage::File& file) {
  const Result<Bytes> size = file.size();
  EXPECT_TRUE(size.is_ok());
  ByteVector bytes(static_cast<std::size_t>(*size));
  EXPECT_EQ(*file.read(bytes, 0), *size);
  return bytes;
}

Life::Life(std::shared_ptr<storage::Target> target, History& history, std::vector<std::string> checkpoints,
           std::uint64_t seed, Bytes first_bytes)
    : target_(std::move(target)), history_(history), random_(seed), first_bytes_(first_bytes) {
  for (const std::string& name : checkpoints) {
    slots_.emplace_back(name, Slots(name, Slots::paths(name, 2), 0));
    alive_ = alive_ && slots_.back().second.look(*target_).is_ok();
    if (alive_) keep_recorded(slots_.back());
  }
  if (alive_) resume(checkpoints.front());
}

Life::~Life() {
  for (auto& [path, open] : open_) (void)std::fclose(open.stream.stream);
}

void Life::run(int saves) {
  for (int i = 0; alive_ && i < saves; ++i) {
    if (loaded() == 0 || below(2) == 0) open_all();
    work(3);
    if (alive_) save(slots_[below(slots_.size())]);
  }
  if (alive_) open_all();
  work(3);
  // The test may end the program anywhere, so buffered bytes need not reach storage first.
  for (auto& [path, open] : open_) alive_ = alive_ && std::fflush(open.stream.stream) == 0;
}

void Life::check_files() {
  const auto& captured = history_[slots_.front().first].captured[loaded()];
  ASSERT_EQ(loaded_.positions.size(), captured.size());
  for (const auto& [path, held] : captured) {
    const Status status = open(path, "r+");
    ASSERT_TRUE(status.is_ok()) << status.text();
    Open& file = open_.at(path);
    EXPECT_EQ(std::ftell(file.stream.stream), held.position) << path;
    const ByteVector bytes = all_of(*file.stream.file);
    EXPECT_EQ(bytes.size(), held.bytes.size()) << path;
    const auto differ = std::mismatch(bytes.begin(), bytes.end(), held.bytes.begin(), held.bytes.end());
    EXPECT_TRUE(differ.first == bytes.end())
        << path << " of generation " << loaded() << " differs at byte " << differ.first - bytes.begin();
  }
}

void Life::keep_recorded(const Checkpoint& checkpoint) {
  const auto& [name, slots] = checkpoint;
  journal::Journal& journal = journals_.of(*target_, name);
  const std::int64_t generation = slots.next_generation() - 1;
  journal.begin(generation, {});
  const Result<std::vector<std::string>> paths = slots.candidates(*target_);
  for (const std::string& path : *paths) {
    const Result<Copy> copy = read_directory(*target_, path);
    if (copy.is_ok()) journal.begin(generation, positions_of(*copy));
  }
}

void Life::resume(const std::string& name) {
  loaded_ = load_newest(*target_, name);
  if (loaded_.generation == 0) return;
  recorded_.load(loaded_.positions, loaded_.generation, loaded_.undo);
}

Status Life::open(const std::string& path, const char* mode) {
  const journal::Position* found = recorded_.find(path);
  const auto from = found != nullptr ? std::optional(*found) : std::nullopt;
  Result<files::CStream> stream =
      files::open_stream(*target_, path, *files::parse_mode(mode), false, from, journals_);
  TR_TRY(stream.status());
  recorded_.take(path);
  Open& file = open_[path];
  file.stream = std::move(*stream);
  if (from)
    file.bytes = history_[slots_.front().first].captured[loaded()][path].bytes;
  else
    file.bytes = all_of(*file.stream.file);
  return {};
}

void Life::open_all() {
  for (const char* path : {"a", "./b"}) {
    if (!alive_ || open_.contains(path)) continue;
    const bool is_there = *target_->exists(path);
    alive_ = open(path, is_there && below(2) == 0 ? "r+" : "w+").is_ok();
    if (alive_ && open_.at(path).bytes.empty()) put(open_.at(path), 0, first_bytes_);
  }
}

void Life::put(Open& file, Bytes offset, Bytes count) {
  std::FILE* const stream = file.stream.stream;
  ByteVector bytes(static_cast<std::size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
  alive_ = alive_ && files::flush_before_seek(stream) == 0 && ::fseeko(stream, offset, SEEK_SET) == 0 &&
           std::fwrite(bytes.data(), 1, bytes.size(), stream) == bytes.size();
  file.bytes.resize(std::max(file.bytes.size(), static_cast<std::size_t>(offset + count)));
  std::copy(bytes.begin(), bytes.end(), file.bytes.begin() + offset);
}

void Life::write_anywhere(Open& file) {
  const std::size_t size = file.bytes.size();
  // The first piece lies at the end, behind it with a hole, or anywhere. The next pieces lie behind it or
  // before.
  std::size_t at = below(4) == 0 && size < 12000 ? size + below(2) * below(700) : below(size + 1);
  for (std::size_t pieces = 1 + below(3); alive_ && pieces > 0; --pieces) {
    const std::size_t count = 1 + below(900);
    put(file, static_cast<Bytes>(at), static_cast<Bytes>(count));
    at = below(2) == 0 ? at + count : at - below(at + 1);
  }
}

void Life::cut(const std::string& path, Open& file) {
  const auto size = static_cast<Bytes>(below(file.bytes.size() + 1));
  alive_ = alive_ && std::fflush(file.stream.stream) == 0 &&
           journals_.keep(path, *file.stream.file, size, std::numeric_limits<Bytes>::max()).is_ok();
  if (!alive_) return;
  file.stream.growth->cut(size);
  alive_ = file.stream.file->truncate(size).is_ok();
  file.bytes.resize(static_cast<std::size_t>(size));
}

void Life::open_anew(const std::string& path, const char* mode) {
  const ByteVector bytes = open_.at(path).bytes;
  close(path);
  alive_ = alive_ && open(path, mode).is_ok();
  if (alive_ && mode[0] == 'r') EXPECT_TRUE(open_.at(path).bytes == bytes);
}

void Life::close(const std::string& path) {
  alive_ = std::fclose(open_.at(path).stream.stream) == 0;
  open_.erase(path);
}

void Life::work(std::size_t steps) {
  for (; alive_ && steps > 0 && !open_.empty(); --steps) {
    const std::string path = std::next(open_.begin(), static_cast<long>(below(open_.size())))->first;
    Open& file = open_.at(path);
    switch (below(13)) {
      case 0:
      case 1:
        cut(path, file);
        break;
      case 2:
        open_anew(path, "w+");
        break;
      case 3:
        open_anew(path, "r+");
        break;
      case 4:
        alive_ = std::fflush(file.stream.stream) == 0 && file.stream.file->sync().is_ok();
        break;
      case 5:
        close(path);
        break;
      default:
        write_anywhere(file);
        if (alive_ && below(2) == 0) alive_ = std::fflush(file.stream.stream) == 0;
    }
  }
}

std::vector<journal::Position> Life::stand(const std::string& name, std::int64_t generation) {
  std::vector<journal::Position> positions;
  auto& captured = history_[name].captured[generation];
  captured.clear();
  for (auto& [path, file] : open_) {
    alive_ = alive_ && std::fflush(file.stream.stream) == 0;
    const Bytes position = ::ftello(file.stream.stream);
    const auto size = static_cast<Bytes>(file.bytes.size());
    if (alive_) EXPECT_EQ(*file.stream.file->size(), size);
    positions.push_back({path, position, size});
    captured[path] = {file.bytes, position};
  }
  for (const journal::Position& left : recorded_.left()) {
    positions.push_back(left);
    captured[left.path] = history_[slots_.front().first].captured[loaded()][left.path];
  }
  return positions;
}

void Life::clean_up(const Checkpoint& checkpoint) {
  const auto paths = checkpoint.second.candidates(*target_);
  if (!paths.is_ok()) return;
  const auto useless = useless_undo_files(*target_, checkpoint.first, *paths, oldest_undo_of);
  for (std::size_t i = 0; useless.is_ok() && i < useless->size(); ++i)
    (void)target_->remove((*useless)[i].path).is_ok();
}

std::function<Status()> Life::what_makes_durable() {
  std::vector<std::pair<std::string, std::shared_ptr<storage::File>>> held;
  for (auto& [path, file] : open_) held.emplace_back(path, file.stream.file->hold());
  return [this, held]() -> Status {
    for (const auto& [path, file] : held) {
      TR_TRY(file->sync());
      TR_TRY(target_->sync_directory_of(path));
    }
    return {};
  };
}

void Life::save(Checkpoint& checkpoint) {
  auto& [name, slots] = checkpoint;
  const std::int64_t generation = slots.next_generation();
  const std::vector<journal::Position> positions = stand(name, generation);
  if (!alive_) return;
  const SavePlan plan{slots.place_for(generation), Mode::parallel, {run_, generation}, {}, 1'700'000'000};
  const Result<bool> checked = slots.check(*target_, plan.path, plan.mode, 1);
  EXPECT_NE(checked.status().code(), Code::state) << checked.status().text();
  alive_ = alive_ && checked.is_ok();
  if (!alive_) return;
  slots.begun(generation, plan.path);
  journals_.of(*target_, name).begin(generation, positions);
  data_.fill(generation);
  Saving saving(*target_, plan, 0, 1, data_.items());
  saving.set_failed(slots.failed());
  saving.set_make_durable(what_makes_durable());
  saving.set_clean_up([&] {
    clean_up(checkpoint);
    return Status();
  });
  saving.place({saving.part_bytes()});
  Packer outputs;
  journal::put_positions(outputs, positions);
  saving.set_outputs(outputs.take());
  ByteVector image(static_cast<std::size_t>(saving.data_bytes()));
  saving.capture(image.data());
  data_.spoil();
  for (Status (Saving::*const step)() : {&Saving::write, &Saving::seal, &Saving::commit}) {
    if (below(4) == 0) open_all();
    work(below(3));
    alive_ = alive_ && (saving.*step)().is_ok();
  }
  if (alive_) {
    slots.committed(generation, plan.path);
    history_[name].committed = generation;
  } else {
    saving.abandon();
  }
  (void)saving.close().is_ok();
}

}  // namespace tailrace::checkpoint
