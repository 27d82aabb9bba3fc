// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/manifest.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"
#include "ground/base/waiting.hpp"
#include "ground/storage/replace.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::streams {
namespace {

using storage::File;
using storage::OpenMode;
using storage::Target;

constexpr Bytes kPiece = Bytes{4} << 20;
// The longest line of a manifest: no file has so many steps. A file without an end of a line for so long is
// no manifest, and may be far larger than memory.
constexpr Bytes kLongestLine = Bytes{64} << 20;

Status no_manifest(const std::string& path, Bytes at) {
  return {Code::corrupt,
          cat(path, ": no line ends in the ", counted(kLongestLine, "byte"), " at ", at,
              ": this is no manifest, or a damaged one; move it away, and a new one is begun")};
}

#if TAILRACE_HAVE_JSON

using Json = nlohmann::ordered_json;

std::string line_of(const ManifestEntry& entry) {
  Json json;
  json["path"] = entry.path;
  json["size"] = entry.size;
  json["xxh3_128"] = entry.digest;
  json["run"] = entry.run.text();
  if (entry.time.has_base()) json["base"] = entry.base;
  if (!entry.time.is_default()) json[entry.time.is_model() ? "time_units" : "lead_unit"] = entry.time.unit();
  if (entry.time.is_model()) {
    std::vector<double> times;
    for (const std::int64_t lead : entry.leads) times.push_back(TimeAxis::time_of(lead));
    json["times"] = times;
  } else {
    json["leads"] = entry.leads;
  }
  json["records"] = entry.records;
  // A file name need not be UTF-8. Other bytes become U+FFFD, because JSON has no other way.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Takes the times of the steps. Throws as Json does.
Status take_times(const Json& json, ManifestEntry& entry) {
  if (json.contains("times")) {
    entry.time = TimeAxis::of_model();
    TR_TRY(entry.time.set_units(json.at("time_units").get<std::string>()));
    for (const double time : json.at("times").get<std::vector<double>>()) {
      const Result<std::int64_t> code = TimeAxis::code_of(time);
      TR_TRY(code.status());
      entry.leads.push_back(*code);
    }
    if (!json.contains("base")) return {};
    TR_TRY(entry.time.set_base());
  } else {
    const TimeUnit* const unit = find_time_unit(json.value("lead_unit", "s"));
    if (unit == nullptr) return {Code::corrupt, "its lead_unit is none"};
    entry.time = TimeAxis::of_leads(*unit);
    entry.leads = json.at("leads").get<std::vector<std::int64_t>>();
  }
  entry.base = json.at("base").get<std::string>();
  return {};
}

Result<ManifestEntry> entry_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return Status(Code::corrupt, "no JSON object");
  ManifestEntry entry;
  try {
    entry.path = json.at("path").get<std::string>();
    entry.size = json.at("size").get<Bytes>();
    entry.digest = json.at("xxh3_128").get<std::string>();
    TR_TRY(take_times(json, entry));
    entry.records = json.at("records").get<std::int64_t>();
    Result<Uuid> run = Uuid::parse(json.at("run").get<std::string>());
    TR_TRY(run.status());
    entry.run = *run;
  } catch (const Json::exception& error) {
    return Status(Code::corrupt, error.what());
  }
  return entry;
}

// True if a loss of power may have left the line. It may leave any part of the bytes that were being
// appended, and anything in place of the others. The line then is no JSON, with or without an end. A line
// that is JSON was written by somebody.
bool is_torn(std::string_view line) { return !Json::accept(line); }

#else

// manifest_available() fails first in this build: these functions are never used.
std::string line_of(const ManifestEntry&) { return {}; }
Result<ManifestEntry> entry_of(std::string_view) { return ManifestEntry(); }
bool is_torn(std::string_view) { return false; }

#endif

// One thread of this process at a time appends to a manifest. The threads take turns without a limit of time:
// each may wait for storage.
class Turn {
 public:
  explicit Turn(const std::string& path) : mutex_(of(path)), lock_(*mutex_) {}

 private:
  static std::shared_ptr<std::mutex> of(const std::string& path) {
    static std::mutex guard;
    static auto& all = *new std::map<std::string, std::weak_ptr<std::mutex>>;
    const std::lock_guard lock(guard);
    std::erase_if(all, [](const auto& each) { return each.second.expired(); });
    std::shared_ptr<std::mutex> mutex = all[path].lock();
    if (mutex == nullptr) all[path] = mutex = std::make_shared<std::mutex>();
    return mutex;
  }
  std::shared_ptr<std::mutex> mutex_;
  std::unique_lock<std::mutex> lock_;
};

// Two processes that finish files in one directory at the same moment must both get their line.
Result<std::shared_ptr<void>> lock_manifest(Target& target, const std::string& path) {
  // Each try costs calls of storage: among whole objects some of a service far away.
  const Patience patience{Code::state, std::chrono::milliseconds(2), std::chrono::seconds(10),
                          std::chrono::milliseconds(250)};
  Result<std::shared_ptr<void>> lock = try_patiently(patience, [&] { return target.lock(path + ".lock"); });
  if (lock.status().code() == Code::state) return Status(Code::timeout, lock.status().text());
  return lock;
}

// Returns the end of the last line that ends within the first `size` bytes, or 0 if there is none.
Result<Bytes> end_of_line(File& file, const std::string& path, Bytes size) {
  ByteVector piece(64 << 10);
  for (Bytes end = size; end > 0;) {
    if (size - end >= kLongestLine) return no_manifest(path, end);
    const Bytes begin = std::max<Bytes>(0, end - static_cast<Bytes>(piece.size()));
    const auto part = std::span(piece).first(static_cast<std::size_t>(end - begin));
    const Result<Bytes> got = file.read(part, begin);
    TR_TRY(got.status());
    for (Bytes i = *got; i > 0; --i) {
      if (part[static_cast<std::size_t>(i - 1)] == std::byte{'\n'}) return begin + i;
    }
    end = begin;
  }
  return Bytes{0};
}

// Returns the end of the last line that a crash has not torn.
Result<Bytes> end_of_lines(File& file, const std::string& path) {
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  Result<Bytes> end = end_of_line(file, path, *size);
  while (end.is_ok() && *end > 0) {
    if (*size - *end >= kLongestLine) return no_manifest(path, *end);
    const Result<Bytes> begin = end_of_line(file, path, *end - 1);
    TR_TRY(begin.status());
    std::string line(static_cast<std::size_t>(*end - 1 - *begin), '\0');
    TR_TRY(file.read(std::as_writable_bytes(std::span(line)), *begin).status());
    if (!is_torn(line)) break;
    end = begin;
  }
  return end;
}

// Takes the lines from `begin` up to `end`, which end with a line, without their ends.
template <typename Take>
Status for_each_line(File& file, const std::string& path, Bytes begin, Bytes end, const Take& take) {
  std::string text;  // the text behind the last end of a line
  for (Bytes at = begin; at < end;) {
    const std::size_t before = text.size();
    if (static_cast<Bytes>(before) >= kLongestLine) return no_manifest(path, at - kLongestLine);
    text.resize(before + static_cast<std::size_t>(std::min(kPiece, end - at)));
    const Result<Bytes> got = file.read(std::as_writable_bytes(std::span(text).subspan(before)), at);
    TR_TRY(got.status());
    if (*got == 0) break;  // the file was cut meanwhile
    text.resize(before + static_cast<std::size_t>(*got));
    at += *got;
    std::size_t first = 0;
    for (std::size_t stop = text.find('\n', before); stop != std::string::npos;
         stop = text.find('\n', first)) {
      TR_TRY(take(std::string_view(text).substr(first, stop - first)));
      first = stop + 1;
    }
    text.erase(0, first);
  }
  return {};
}

/// True if a loss of power, or a kill, may have left the text of a line: the line's beginning, zeros, or old
/// bytes of the device. Any other text was written by somebody.
bool may_be_remains(std::string_view text) {
  constexpr std::string_view begin = "{\"path\":\"";
  if (text.starts_with(begin) || begin.starts_with(text)) return true;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return true;  // nobody misses it
  return std::ranges::any_of(text, [](char each) {
    const auto code = static_cast<unsigned char>(each);
    return (code < 0x20 && each != '\t' && each != '\n' && each != '\r') || code == 0x7f;
  });
}

Status foreign(const std::string& path, const std::string& why) {
  return {Code::state, cat(path, ": ", why,
                           ": the file is somebody else's and stays as it is; move it away, write to another "
                           "directory, or leave the manifest out with manifest=off")};
}

/// Returns Code::state unless the file is a manifest: the first or the last of its lines up to `end` is an
/// entry, and behind `end` stand at most the remains of a crash.
Status check_lines(File& file, const std::string& path, Bytes end) {
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  if (end > 0) {
    bool is_ours = false;
    const Status enough(Code::state, "one line is enough");
    const auto look = [&](std::string_view line) {
      is_ours = is_ours || entry_of(line).is_ok();
      return enough;
    };
    const Status first = for_each_line(file, path, 0, end, look);
    if (first.code() != enough.code()) TR_TRY(first);
    // Damage to older lines must not keep a file from being announced.
    const Result<Bytes> last = is_ours ? Result<Bytes>(end) : end_of_line(file, path, end - 1);
    TR_TRY(last.status());
    const Status again = for_each_line(file, path, *last, end, look);
    if (again.code() != enough.code()) TR_TRY(again);
    if (!is_ours) return foreign(path, "its lines are not those of a manifest");
  }
  std::string tail(static_cast<std::size_t>(std::min<Bytes>(*size - end, 4096)), '\0');
  const Result<Bytes> got = file.read(std::as_writable_bytes(std::span(tail)), end);
  TR_TRY(got.status());
  tail.resize(static_cast<std::size_t>(*got));
  if (may_be_remains(tail)) return {};
  return foreign(path,
                 cat("its last ", counted(*size - end, "byte"), " are text that no stream has written"));
}

Status append_line(Target& target, const std::string& path, const std::string& line) {
  // O_CREAT fails for another user's file in a sticky directory if fs.protected_regular is set (Linux,
  // proc(5)).
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::own_existing);
  if (file.status().error_number() == ENOENT) file = target.open(path, OpenMode::own);
  TR_TRY(file.status());
  const Result<Bytes> end = end_of_lines(**file, path);
  TR_TRY(end.status());
  TR_TRY(check_lines(**file, path, *end));
  TR_TRY(storage::cut_back(**file, *end).status());
  const Status written = (*file)->write(std::as_bytes(std::span(line)), *end);
  if (!written.is_ok()) {
    // The next append would only cut half a line off, but a reader would see it until then.
    static_cast<void>(storage::cut_back(**file, *end));
    return written;
  }
  TR_TRY((*file)->sync());
  // The directory is synchronised even if the file existed: the process that made it may have been killed
  // before this.
  TR_TRY(target.sync_directory_of(path));
  return (*file)->close();
}

/// Returns true if the last line about the file says just this.
Result<bool> has_last_line(Target& target, const std::string& path, const ManifestEntry& entry) {
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  if (!*exists) return false;
  const Result<std::vector<ManifestEntry>> told = read_manifest(target, path);
  // Damage to older lines is for their readers. It must not keep a file from being announced.
  if (told.status().code() == Code::corrupt) return false;
  TR_TRY(told.status());
  // The comparison uses the entry as it reads back, because a name need not be UTF-8.
  const Result<ManifestEntry> wanted = entry_of(line_of(entry));
  TR_TRY(wanted.status());
  const auto last = std::find_if(told->rbegin(), told->rend(),
                                 [&](const ManifestEntry& each) { return each.path == wanted->path; });
  return last != told->rend() && *last == *wanted;
}

}  // namespace

Status manifest_available() {
#if TAILRACE_HAVE_JSON
  return {};
#else
  return {Code::unsupported,
          "manifest.jsonl needs JSON, and this Tailrace was built without nlohmann-json; build with it, or "
          "use manifest=off"};
#endif
}

std::string manifest_path(const std::string& data_path) {
  return data_path.substr(0, data_path.rfind('/') + 1) + "manifest.jsonl";
}

ManifestEntry manifest_entry(const std::string& data_path, const IndexContents& contents) {
  ManifestEntry entry;
  entry.path = data_path.substr(data_path.rfind('/') + 1);
  entry.size = contents.data_end();
  entry.run = contents.header.run;
  entry.time = contents.header.time;
  if (entry.time.has_base()) entry.base = format_time(contents.header.base);
  for (const IndexStep& step : contents.steps) {
    entry.leads.push_back(step.lead);
    entry.records += static_cast<std::int64_t>(step.records.size());
  }
  return entry;
}

Result<std::string> digest_file(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  return guarded([&]() -> Result<std::string> {
    const Result<Bytes> size = (*file)->size();
    TR_TRY(size.status());
    ByteVector piece(static_cast<std::size_t>(std::clamp<Bytes>(*size, 1, kPiece)));
    Digest digest;
    for (Bytes at = 0;;) {
      const Result<Bytes> got = (*file)->read(piece, at);
      TR_TRY(got.status());
      digest.add(std::span(piece).first(static_cast<std::size_t>(*got)));
      at += *got;
      if (*got < static_cast<Bytes>(piece.size())) return digest.hex();
    }
  });
}

Status check_manifest(Target& target, const std::string& path) {
  return guarded([&]() -> Status {
    const Result<std::unique_ptr<File>> file = target.open(path, OpenMode::own_existing);
    const int error = file.status().error_number();
    if (error == ELOOP || error == ESPIPE || error == EISDIR) return file.status();
    if (!file.is_ok()) return {};
    const Result<Bytes> end = end_of_lines(**file, path);
    TR_TRY(end.status());
    return check_lines(**file, path, *end);
  });
}

Status append_to_manifest(Target& target, const std::string& path, const ManifestEntry& entry) {
  TR_TRY(manifest_available());
  return guarded([&]() -> Status {
    const std::string line = line_of(entry);
    const Turn turn(path);
    const Result<std::shared_ptr<void>> lock = lock_manifest(target, path);
    TR_TRY(lock.status());
    return append_line(target, path, line);
  });
}

Result<bool> ensure_in_manifest(Target& target, const std::string& path, const ManifestEntry& entry) {
  const Result<bool> told = has_last_line(target, path, entry);
  TR_TRY(told.status());
  if (!*told) {
    TR_TRY(append_to_manifest(target, path, entry));
    return true;
  }
  // The process that wrote the line may have been killed while it held the lock. Taking and giving back the
  // lock removes its lock file, too.
  const Turn turn(path);
  const Result<std::shared_ptr<void>> lock = lock_manifest(target, path);
  TR_TRY(lock.status());
  TR_TRY(storage::make_durable(target, path));
  return false;
}

Result<std::vector<ManifestEntry>> read_manifest(Target& target, const std::string& path) {
  TR_TRY(manifest_available());
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> end = end_of_lines(**file, path);
  TR_TRY(end.status());
  std::vector<ManifestEntry> entries;
  TR_TRY(for_each_line(**file, path, 0, *end, [&](std::string_view line) -> Status {
    Result<ManifestEntry> entry = entry_of(line);
    if (!entry.is_ok())
      return {Code::corrupt, cat(path, ", line ", entries.size() + 1, ": ", entry.status().text())};
    entries.push_back(std::move(*entry));
    return {};
  }));
  return entries;
}

Status create_ready_marker(Target& target, const std::string& data_path, const std::string& suffix) {
  const std::string path = data_path + suffix;
  // Others can guess the marker's name, and put a link there: OpenMode::own refuses links.
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::own);
  TR_TRY(file.status());
  TR_TRY(storage::cut_back(**file, 0).status());
  TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  return target.sync_directory_of(path);
}

Status remove_ready_marker(Target& target, const std::string& data_path, const std::string& suffix) {
  return suffix.empty() ? Status() : storage::remove_durably(target, data_path + suffix);
}

}  // namespace tailrace::streams
