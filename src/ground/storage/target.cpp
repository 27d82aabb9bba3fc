// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/target.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "ground/base/bytes.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/objects/object_files.hpp"
#include "ground/storage/objects/places.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/routing/routing.hpp"

namespace tailrace::storage {

namespace {

using Made = Result<std::shared_ptr<Target>>;

/// A new target is a row here, beside what the room's page (src/ground/README.md) says. The first row is the
/// default, which every build can make.
constexpr std::array registry{
    TargetKind{.name = "posix",
               .use = "every file system",
               .for_programs = true,
               .make = [] { return Made(posix_target()); }},
    TargetKind{.name = "uring",
               .use = "Linux io_uring, where the kernel grants it",
               .for_programs = true,
               .make = uring_target},
    TargetKind{.name = "memory",
               .use = "unit tests, the simulated world",
               .for_programs = false,
               .prefix = "memory://",
               .make = [] { return Made(memory_target()); }},
};

}  // namespace

Bytes bytes_in(Parts parts) {
  Bytes total = 0;
  for (const auto& part : parts) total += static_cast<Bytes>(part.size());
  return total;
}

Status File::write(std::span<const std::byte> data, Bytes offset) {
  const std::span<const std::byte> parts[] = {data};
  return write_gathered(parts, offset);
}

namespace {

class EndedWrite final : public StartedWrite {
 public:
  explicit EndedWrite(Status status) : status_(std::move(status)) {}
  Status finish() override { return status_; }

 private:
  const Status status_;
};

}  // namespace

std::unique_ptr<StartedWrite> ended_write(Status status) {
  return std::make_unique<EndedWrite>(std::move(status));
}

std::unique_ptr<StartedWrite> File::start_write(Parts parts, Bytes offset, WriteQueue& /*queue*/) {
  return ended_write(write_gathered(parts, offset));
}

Result<bool> File::holds(Bytes end, std::span<const Range>) {
  const Result<Bytes> found = size();
  TR_TRY(found.status());
  return *found >= end;
}

Result<Identity> Target::identity_of(const std::string& path) {
  return Status(Code::unsupported, cat(path, ": this storage does not tell whether a file has changed"));
}

Status Target::copy(const std::string& from, Bytes size, const std::string& to) {
  constexpr Bytes most = Bytes{4} << 20;
  Result<std::unique_ptr<File>> source = open(from, OpenMode::read);
  TR_TRY(source.status());
  Result<std::unique_ptr<File>> made = open(to, OpenMode::anew);
  TR_TRY(made.status());
  ByteVector piece(static_cast<std::size_t>(std::min(size, most)));
  for (Bytes at = 0; at < size;) {
    const auto part = std::span(piece).first(static_cast<std::size_t>(std::min(size - at, most)));
    const Result<Bytes> got = (*source)->read(part, at);
    TR_TRY(got.status());
    if (*got < std::ssize(part)) {
      return {Code::corrupt, cat(from, ": ends at byte ", at + *got, ", but its index says that ", size,
                                 " are committed; it was cut by something else")};
    }
    TR_TRY((*made)->write(part, at));
    at += *got;
  }
  TR_TRY((*made)->sync());
  return (*made)->close();
}

Status Target::sync_files(std::span<File* const> files) {
  Status status;
  for (File* const file : files) status = first_cause(status, file->sync());
  return status;
}

Status Target::sync_directories_of(std::span<const std::string> paths) {
  Status status;
  for (const std::string& path : paths) status = first_cause(status, sync_directory_of(path));
  return status;
}

bool is_file(Target& target, const std::string& path) {
  const Result<Kind> kind = target.kind_of(path);
  return kind.is_ok() && *kind == Kind::file;
}

Result<std::optional<Bytes>> size_if_there(Target& target, const std::string& path) {
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<Bytes>();
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  return std::optional(*size);
}

Status check_holds(Target& target, const std::string& path, Bytes end, std::span<const Range> ranges) {
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  std::string found = ": is missing";
  if (*exists) {
    Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
    TR_TRY(file.status());
    const Result<bool> holds = (*file)->holds(end, ranges);
    TR_TRY(holds.status());
    if (*holds) return {};
    const Result<Bytes> size = (*file)->size();
    TR_TRY(size.status());
    if (*size >= end)
      return {Code::corrupt,
              cat(path,
                  ": lacks parts of its steps, or has objects of another size: something else has "
                  "removed or changed them; put them back as they were, or begin from a checkpoint "
                  "before the steps")};
    found = cat(": has ", counted(*size, "byte"));
  }
  return {Code::corrupt,
          cat(path, found, ", but ", end, " were written: something else has ", *exists ? "cut" : "removed",
              " the file; put it back as it was, or begin from a checkpoint before its steps")};
}

Result<bool> remove_if_there(Target& target, const std::string& path) {
  Result<bool> exists = target.exists(path);
  if (!exists.is_ok() || !*exists) return exists;
  const Status removed = target.remove(path);
  if (removed.error_number() == ENOENT) return false;  // somebody else has removed it meanwhile
  TR_TRY(removed);
  return true;
}

Status remove_durably(Target& target, const std::string& path) {
  const Result<bool> removed = remove_if_there(target, path);
  TR_TRY(removed.status());
  return *removed ? target.sync_directory_of(path) : Status();
}

Status create_empty(Target& target, const std::string& path, OpenMode mode) {
  Result<std::unique_ptr<File>> file = target.open(path, mode);
  TR_TRY(file.status());
  TR_TRY((*file)->close());
  return target.sync_directory_of(path);
}

Status sync_file(Target& target, const std::string& path, OpenMode mode) {
  const Result<std::unique_ptr<File>> file = target.open(path, mode);
  TR_TRY(file.status());
  TR_TRY((*file)->sync());
  return (*file)->close();
}

Status make_durable(Target& target, const std::string& path) {
  TR_TRY(sync_file(target, path));
  return target.sync_directory_of(path);
}

std::span<const TargetKind> target_kinds() { return registry; }

Result<std::shared_ptr<Target>> make_target(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TargetKind& kind : registry) {
    if (kind.name == name) return kind.make();
    names.push_back(kind.name);
  }
  return unknown_word("storage target", name, names);
}

Result<std::shared_ptr<Target>> make_target_of_program(std::string_view name) {
  Result<std::shared_ptr<Target>> usual = make_target(name);
  TR_TRY(usual.status());
  std::vector<Route> routes;
  for (const TargetKind& kind : registry) {
    if (kind.for_programs && !kind.prefix.empty()) routes.push_back({std::string(kind.prefix), kind.make});
  }
  const std::shared_ptr<Target> files = routes.empty() ? *usual : routing_target(*usual, std::move(routes));
  return without_object_files(files);
}

std::shared_ptr<Target> default_target() { return *make_target_of_program(registry.front().name); }

std::size_t prefix_length(std::string_view path) {
  for (const TargetKind& kind : registry) {
    if (!kind.prefix.empty() && path.starts_with(kind.prefix)) return kind.prefix.size();
  }
  return place_kind_of(path).prefix.size();
}

}  // namespace tailrace::storage
