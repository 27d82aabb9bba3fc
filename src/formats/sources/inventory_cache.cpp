// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/sources/inventory_cache.hpp"

#include <algorithm>
#include <cstdlib>

#include "formats/sources/inventory_file.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::sources {

namespace {

using storage::File;
using storage::OpenMode;
using storage::Target;

constexpr std::string_view ending = ".inventory";
constexpr std::string_view unfinished = ".inventory.tmp-";
constexpr Bytes longest = Bytes{1} << 30;  // of a kept inventory: more than 10 million records

Result<KeptInventory> load(Target& target, const std::string& place) {
  const Result<std::unique_ptr<File>> file = target.open(place, OpenMode::read_regular);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  if (*size > longest) return Status(Code::corrupt, "longer than any inventory");
  ByteVector bytes(static_cast<std::size_t>(*size));
  const Result<Bytes> got = (*file)->read(bytes, 0);
  TR_TRY(got.status());
  return decode_inventory(std::span(bytes).first(static_cast<std::size_t>(*got)));
}

/// True if `opening.path` still names the file that `opening` has opened. Another file may have replaced it
/// after `opening` took its identity.
bool is_still(const Opening& opening) {
  const Result<storage::Identity> now = opening.target->identity_of(opening.path);
  return now.is_ok() && opening.identity && *now == *opening.identity;
}

/// Puts the inventory into the cache. It is not synchronised: if a loss of power damages it, a reader finds a
/// wrong checksum, and the inventory is made again.
Status write_whole(Target& target, const std::string& place, const ByteVector& bytes) {
  const std::string name = cat(place, ".tmp-", Uuid::random().text().substr(0, 18));
  return storage::replace_file(target, place, bytes, name, storage::Durability::none);
}

/// Removes the oldest files of `cache` if it has more than `most_kept`: inventories, and unfinished ones that
/// a killed process left.
void make_room(Target& target, const std::string& cache) {
  const Result<std::vector<std::string>> names = target.list(cache);
  if (!names.is_ok() || names->size() <= most_kept) return;
  std::vector<std::pair<std::int64_t, std::string>> kept;  // by age
  for (const std::string& name : *names) {
    if (!name.ends_with(ending) && name.find(unfinished) == std::string::npos) continue;
    const std::string path = cat(cache, "/", name);
    const Result<storage::Identity> identity = target.identity_of(path);
    if (identity.is_ok()) kept.emplace_back(identity->modified, path);
  }
  std::ranges::sort(kept);
  // A tenth is removed at once, so that only one in many calls has to look at all inventories.
  constexpr std::size_t stay = most_kept - most_kept / 10;
  for (std::size_t i = 0; i + stay < kept.size(); ++i) (void)storage::remove_if_there(target, kept[i].second);
}

}  // namespace

std::string cache_directory(std::string_view setting) {
  if (setting == "none") return "";
  if (setting != "auto") return std::string(setting);
  // The XDG Base Directory Specification says to ignore relative paths.
  if (const char* const own = std::getenv("XDG_CACHE_HOME"); own != nullptr && own[0] == '/')
    return cat(own, "/tailrace");
  if (const char* const home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return cat(home, "/.cache/tailrace");
  return "";
}

std::string beside(const std::string& path) { return cat(path, ending); }

Result<std::string> place_in(const std::string& cache, const std::string& path) {
  const Result<std::string> whole = storage::whole_path(path);
  TR_TRY(whole.status());
  Digest digest;
  digest.add(std::as_bytes(std::span(*whole)));
  return cat(cache, "/", digest.hex(), ending);
}

std::optional<Inventory> kept_inventory(const FrontEnd& front_end, const Opening& opening,
                                        const std::string& cache) {
  if (!opening.identity || front_end.maker == nullptr) return std::nullopt;
  std::vector<std::string> places{beside(opening.path)};
  const Result<std::string> place =
      cache.empty() ? Status(Code::state, "none") : place_in(cache, opening.path);
  if (place.is_ok()) places.push_back(*place);
  for (const std::string& each : places) {
    Result<KeptInventory> kept = load(*opening.target, each);
    if (kept.is_ok() && kept->identity == *opening.identity && kept->inventory.format == front_end.name &&
        kept->maker == front_end.maker() && is_still(opening))
      return std::move(kept->inventory);
  }
  return std::nullopt;
}

Status keep(const FrontEnd& front_end, const Opening& opening, const Inventory& inventory,
            const std::string& place) {
  const Result<std::string> whole = storage::whole_path(opening.path);
  TR_TRY(whole.status());
  if (!opening.is_settled || !is_still(opening))
    return {Code::state, cat(opening.path, " has just changed: its inventory is not kept")};
  return write_whole(*opening.target, place,
                     encode_inventory({*whole, *opening.identity, inventory, front_end.maker()}));
}

Status keep_in(const std::string& cache, const FrontEnd& front_end, const Opening& opening,
               const Inventory& inventory) {
  const Result<std::string> place = place_in(cache, opening.path);
  TR_TRY(place.status());
  TR_TRY(opening.target->make_directories(cache));
  TR_TRY(keep(front_end, opening, inventory, *place));
  make_room(*opening.target, cache);
  return {};
}

Result<Inventory> kept_or_scanned(const FrontEnd& front_end, const Opening& opening,
                                  const std::string& cache) {
  if (std::optional<Inventory> kept = kept_inventory(front_end, opening, cache)) return std::move(*kept);
  Result<Inventory> inventory = front_end.scan(opening);
  TR_TRY(inventory.status());
  if (cache.empty() || !opening.identity || front_end.maker == nullptr) return inventory;
  const Status kept = keep_in(cache, front_end, opening, *inventory);
  if (!kept.is_ok())
    log(LogLevel::info, cat("the inventory of ", opening.path, " is not kept: ", kept.text()));
  return inventory;
}

}  // namespace tailrace::sources
