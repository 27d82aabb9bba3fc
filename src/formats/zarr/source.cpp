// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/front_end.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <ranges>

#include "formats/variables/cf_source.hpp"
#include "formats/variables/chunked.hpp"
#include "formats/variables/own_records.hpp"
#include "formats/variables/strided.hpp"
#include "formats/zarr/codec.hpp"
#include "formats/zarr/reading.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::zarr {

using namespace variables;

namespace {

constexpr Bytes most_metadata = Bytes{256} << 20;
/// Symbolic links may make a store look endless. (Linux follows 40 of them in a path.)
constexpr int most_groups = 10'000, deepest_group = 32;

/// True if the name is that of an object within the store; false if a part of it is empty, "." or "..".
bool is_inside(std::string_view name) {
  if (name.find('\0') != std::string_view::npos) return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

/// Reads a part of an object into `to`.
Status read_part(storage::FoundObject& object, std::span<std::byte> to, Bytes offset) {
  const Result<Bytes> got = object.read(to, offset);
  TR_TRY(got.status());
  if (*got == std::ssize(to)) return {};
  return {Code::corrupt, cat("expected ", counted(to.size(), "byte"), " at byte ", offset, ", got ", *got)};
}

/// Returns the key of an object in a group, or in the place itself if `group` is empty.
std::string key_in(const std::string& group, std::string_view name) {
  return group.empty() ? std::string(name) : cat(group, "/", name);
}

/// The arrays of a store.
class ZarrStore {
 public:
  explicit ZarrStore(std::unique_ptr<storage::KeyedObjects> objects)
      : objects_(std::move(objects)), path_(objects_->place()) {}

  Status load();
  [[nodiscard]] const cf::FoundContents& contents() const { return contents_; }
  [[nodiscard]] const zarr::ReadArray& array(std::size_t variable) const { return arrays_[variable]; }
  /// Returns the arrays whose metadata could not be understood.
  [[nodiscard]] const std::vector<sources::Unread>& unread() const { return unread_; }
  /// As read_chunked. `is_committed`: the store's index lists the record, so a chunk that is absent is an
  /// error, not a chunk of fill values.
  Result<Index> read(std::size_t variable, std::span<const Index> begin, std::span<const int> plane,
                     const cf::Unpacking& how, const layout::Box& cut, ElementType type, std::byte* values,
                     Scratch& scratch, bool is_committed) const;
  Result<std::vector<double>> numbers(std::size_t variable) const;
  /// Returns the bytes of an array's objects, or `enough` once it has counted so many.
  [[nodiscard]] Result<Bytes> stored(std::size_t variable, Bytes enough) const;
  /// Sets the length of a dimension of times to at least `steps`: while a stream writes, its index is ahead
  /// of the metadata of the store.
  void reach(int dimension, Index steps);

 private:
  Status load_3(const std::string& text);
  Status load_2();
  Status load_members(const std::string& group, int depth);
  Status load_member(const std::string& name, int depth);
  Result<std::optional<std::string>> text_of(const std::string& key) const {
    return objects_->text_of(key, most_metadata);
  }
  Status add_2(const std::string& name, const std::string& group);
  Status add(Result<zarr::ReadNode> node, const std::string& group);
  Status check_inside(const std::string& name) const;
  void name_dimensions();
  [[nodiscard]] std::string in_group(const std::string& array, const std::string& dimension,
                                     Index length) const;
  int dimension_of(const std::string& name, Index length, const std::vector<int>& taken);
  Status count_objects(const std::string& group, std::size_t depth, Bytes enough, Bytes& seen) const;
  Result<const std::byte*> decode(std::size_t variable, std::span<const Index> begin, Scratch& scratch,
                                  bool is_committed) const;
  Status read_chunk(storage::FoundObject& object, const zarr::ReadArray& array, std::span<const Index> begin,
                    Scratch& scratch, bool& is_there) const;

  const std::unique_ptr<storage::KeyedObjects> objects_;
  const std::string path_;
  cf::FoundContents contents_;
  std::map<std::pair<std::string, Index>, std::vector<int>> dimensions_;  // key: name and length
  /// One for each variable.
  std::vector<zarr::ReadArray> arrays_;
  /// The group of each variable's objects.
  std::vector<std::string> groups_of_arrays_;
  std::vector<sources::Unread> unread_;
  int groups_ = 0;
};

/// Returns the dimension of this name and length, and adds it if it is new. A dimension without a name is
/// identified by its length. `taken` are the array's dimensions so far: an array cannot have the same one
/// twice.
int ZarrStore::dimension_of(const std::string& name, Index length, const std::vector<int>& taken) {
  const std::string known = name.empty() ? cat("nameless_", length) : name;
  std::vector<int>& alike = dimensions_[{known, length}];
  for (const int each : alike) {
    if (std::ranges::count(taken, each) == 0) return each;
  }
  contents_.dimensions.push_back({known, length});
  alike.push_back(static_cast<int>(contents_.dimensions.size()) - 1);
  return alike.back();
}

Status ZarrStore::add(Result<zarr::ReadNode> node, const std::string& group) {
  if (!node.is_ok()) {
    unread_.push_back({group.empty() ? "array" : group, node.status()});
    return {};
  }
  if (!node->is_array) return {};
  contents_.variables.push_back(node->array.variable);
  arrays_.push_back(std::move(node->array));
  groups_of_arrays_.push_back(group);
  return {};
}

/// Returns the full name of a dimension of an array in a group. As in xarray's trees, it is the dimension
/// whose coordinate lies in the same group, or else in the nearest group around it. Without a coordinate it
/// belongs to the array's group.
std::string ZarrStore::in_group(const std::string& array, const std::string& dimension, Index length) const {
  const std::size_t own = array.rfind('/');
  if (own == std::string::npos || dimension.empty()) return dimension;
  std::string group = array.substr(0, own + 1);
  for (std::string around = group;;) {
    const int found = contents_.find(around + dimension);
    if (found >= 0) {
      const zarr::ReadArray& coordinate = arrays_[static_cast<std::size_t>(found)];
      if (coordinate.shape == std::vector<Index>{length} &&
          coordinate.dimension_names == std::vector<std::string>{dimension})
        return around + dimension;
    }
    if (around.empty()) return group + dimension;
    around.pop_back();
    const std::size_t outer = around.rfind('/');
    around.resize(outer == std::string::npos ? 0 : outer + 1);
  }
}

void ZarrStore::name_dimensions() {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const zarr::ReadArray& array = arrays_[i];
    cf::FoundVariable& variable = contents_.variables[i];
    for (std::size_t d = 0; d < array.shape.size(); ++d) {
      const std::string own = d < array.dimension_names.size() ? array.dimension_names[d] : "";
      const std::string name = in_group(variable.name, own, array.shape[d]);
      variable.dimensions.push_back(dimension_of(name, array.shape[d], variable.dimensions));
    }
  }
}

Status ZarrStore::check_inside(const std::string& name) const {
  if (is_inside(name)) return {};
  return {Code::corrupt, cat(path_, ": expected names of arrays inside of the store, got '", name, "'")};
}

Status ZarrStore::load_3(const std::string& text) {
  Result<zarr::ReadNode> root = zarr::parse_node(text, path_);
  TR_TRY(root.status().in(path_));
  if (root->is_array) {
    root->array.variable.name = "array";
    return add(std::move(root), "");
  }
  contents_.attributes = root->attributes;
  if (root->members.empty()) return load_members("", 0);
  for (std::size_t i = 0; i < root->members.size(); ++i) {
    const std::string& name = root->members[i];
    TR_TRY(check_inside(name));
    TR_TRY(add(zarr::parse_node(root->texts[i], name), name));
  }
  return {};
}

/// Looks into each group of a group, for stores without consolidated metadata. `group` is the group's
/// name with a slash behind it, or empty for the root.
Status ZarrStore::load_members(const std::string& group, int depth) {
  if (++groups_ > most_groups || depth > deepest_group)
    return {Code::corrupt, cat(path_, ": expected at most ", most_groups, " groups, and ", deepest_group,
                               " inside of one another, got more in '", group, "'")};
  const Result<std::vector<std::string>> names =
      objects_->list(group.substr(0, group.size() - (group.empty() ? 0 : 1)));
  TR_TRY(names.status());
  for (const std::string& name : *names) {
    if (!name.starts_with(".")) TR_TRY(load_member(group + name, depth));
  }
  return {};
}

Status ZarrStore::load_member(const std::string& name, int depth) {
  const Result<std::optional<std::string>> text = text_of(key_in(name, "zarr.json"));
  TR_TRY(text.status());
  if (*text) {
    Result<zarr::ReadNode> node = zarr::parse_node(**text, name);
    const bool is_group = node.is_ok() && !node->is_array;
    return is_group ? load_members(name + "/", depth + 1) : add(std::move(node), name);
  }
  const std::size_t before = arrays_.size();
  TR_TRY(add_2(name, name));
  if (arrays_.size() > before) return {};
  const Result<std::unique_ptr<storage::FoundObject>> group = objects_->find(key_in(name, ".zgroup"));
  TR_TRY(group.status());
  return *group == nullptr ? Status() : load_members(name + "/", depth + 1);
}

Status ZarrStore::add_2(const std::string& name, const std::string& group) {
  const Result<std::optional<std::string>> text = text_of(key_in(group, ".zarray"));
  TR_TRY(text.status());
  if (!*text) return {};
  const Result<std::optional<std::string>> attributes = text_of(key_in(group, ".zattrs"));
  TR_TRY(attributes.status());
  return add(zarr::parse_array_2(**text, attributes->value_or(""), name), group);
}

Status ZarrStore::load_2() {
  const Result<std::optional<std::string>> all = text_of(".zmetadata");
  TR_TRY(all.status());
  if (*all) {
    const Result<zarr::ReadNode> root = zarr::parse_consolidated_2(**all);
    TR_TRY(root.status().in(path_));
    for (std::size_t i = 0; i < root->members.size(); ++i) {
      const std::string& name = root->members[i];
      TR_TRY(check_inside(name));
      TR_TRY(add(zarr::parse_array_2(root->texts[2 * i], root->texts[2 * i + 1], name), name));
    }
    return {};
  }
  TR_TRY(add_2("array", ""));
  return arrays_.empty() && unread_.empty() ? load_members("", 0) : Status();
}

Status ZarrStore::load() {
  const Result<std::optional<std::string>> text = text_of("zarr.json");
  TR_TRY(text.status());
  TR_TRY(*text ? load_3(**text) : load_2());
  contents_.index_names();
  name_dimensions();
  return {};
}

void ZarrStore::reach(int dimension, Index steps) {
  Index& length = contents_.dimensions[static_cast<std::size_t>(dimension)].length;
  if (length >= steps) return;
  length = steps;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const std::vector<int>& of = contents_.variables[i].dimensions;
    for (std::size_t d = 0; d < of.size(); ++d) {
      if (of[d] == dimension) arrays_[i].shape[d] = length;
    }
  }
}

/// Reads the stored bytes of a chunk from its object: the whole object, or in a shard the inner chunk. Sets
/// `is_there` to false if the shard lacks the chunk.
Status ZarrStore::read_chunk(storage::FoundObject& object, const zarr::ReadArray& array,
                             std::span<const Index> begin, Scratch& scratch, bool& is_there) const {
  const Result<Bytes> size = object.size();
  TR_TRY(size.status());
  Bytes offset = 0, length = *size;
  if (array.sharding) {
    const Bytes index_bytes = zarr::shard_index_bytes(array);
    if (*size < index_bytes)
      return {Code::corrupt,
              cat("expected a shard with an index of ", counted(index_bytes, "byte"), ", got ", *size)};
    ByteVector bytes(static_cast<std::size_t>(index_bytes));
    TR_TRY(read_part(object, bytes, array.sharding->index_is_at_end ? *size - index_bytes : 0));
    const Result<zarr::ShardIndex> index = zarr::decode_shard_index(array, std::move(bytes), *size);
    TR_TRY(index.status());
    Index chunk = 0;
    for (std::size_t d = 0; d < begin.size(); ++d) {
      const Index inner = array.sharding->chunk[d];
      chunk = chunk * (array.chunk[d] / inner) + begin[d] % array.chunk[d] / inner;
    }
    const auto place = index->at(chunk);
    is_there = place.has_value();
    if (!is_there) return {};
    offset = place->first;
    length = place->second;
  }
  const Bytes most = 2 * array.chunk_bytes() + (64 << 10);
  if (length > most)
    return {Code::corrupt,
            cat("expected a chunk of at most ", most, " bytes, got one of ", length, " at byte ", offset)};
  scratch.bytes.resize(static_cast<std::size_t>(length));
  return read_part(object, scratch.bytes, offset);
}

Result<const std::byte*> ZarrStore::decode(std::size_t variable, std::span<const Index> begin,
                                           Scratch& scratch, bool is_committed) const {
  const zarr::ReadArray& array = arrays_[variable];
  std::vector<Index> number;
  for (std::size_t d = 0; d < begin.size(); ++d) number.push_back(begin[d] / array.chunk[d]);
  const std::string key = key_in(groups_of_arrays_[variable], array.object(number));
  const std::string path = objects_->name_of(key);
  const Result<std::unique_ptr<storage::FoundObject>> object = objects_->find(key);
  TR_TRY(object.status());
  bool is_there = *object != nullptr;
  if (is_there) TR_TRY(read_chunk(**object, array, begin, scratch, is_there).in(path));
  if (!is_there && is_committed)
    return Status(Code::corrupt,
                  cat(path, ": expected a chunk of a record that the store's index tells, got ",
                      *object == nullptr ? "no such object" : "an object without it",
                      "; it was removed by something else"));
  if (!is_there) return nullptr;
  TR_TRY(zarr::decode_chunk(array.coding, array.inner_chunk(), std::ssize(array.fill), scratch.bytes,
                            scratch.decoded)
             .in(path));
  return scratch.decoded.data();
}

Result<Index> ZarrStore::read(std::size_t variable, std::span<const Index> begin, std::span<const int> plane,
                              const cf::Unpacking& how, const layout::Box& cut, ElementType type,
                              std::byte* values, Scratch& scratch, bool is_committed) const {
  const zarr::ReadArray& of = arrays_[variable];
  TR_TRY(of.refused);
  const ChunkedArray array = chunked_array(of.shape, of.inner_chunk(), of.fill);
  return read_chunked(array, begin, plane, how, cut, type, values, [&](std::span<const Index> chunk) {
    return decode(variable, chunk, scratch, is_committed);
  });
}

Result<std::vector<double>> ZarrStore::numbers(std::size_t variable) const {
  const auto read_all = [&](auto begin, auto plane, auto& how, auto& all, std::byte* numbers) {
    Scratch scratch;
    return read(variable, begin, plane, how, all, ElementType::f64, numbers, scratch, false).status();
  };
  return read_coordinate(contents_.variables[variable], arrays_[variable].shape, read_all);
}

Status ZarrStore::count_objects(const std::string& group, std::size_t depth, Bytes enough,
                                Bytes& seen) const {
  const Result<std::vector<std::string>> names = objects_->list(group);
  const int error = names.status().error_number();
  if (error == ENOENT || error == ENOTDIR) return {};
  TR_TRY(names.status());
  for (const std::string& name : *names) {
    if (seen >= enough) return {};
    if (name.starts_with(".z") || name == "zarr.json") continue;
    const std::string key = key_in(group, name);
    const Result<std::unique_ptr<storage::FoundObject>> object = objects_->find(key);
    if (object.is_ok() && *object != nullptr) {
      const Result<Bytes> size = (*object)->size();
      TR_TRY(size.status());
      seen = std::min(enough, seen + *size);
    } else if (depth > 0) {
      TR_TRY(count_objects(key, depth - 1, enough, seen));
    }
  }
  return {};
}

Result<Bytes> ZarrStore::stored(std::size_t variable, Bytes enough) const {
  Bytes seen = 0;
  // The names of chunks may have one level of directories for each dimension, and one more.
  TR_TRY(count_objects(groups_of_arrays_[variable], arrays_[variable].shape.size() + 1, enough, seen));
  return seen;
}

struct OpenedStore {
  std::shared_ptr<ZarrStore> store;
  CfInventory found;
};

/// True if the first dimension of an array counts the steps of the stream.
bool has_steps(const OpenedStore& opened, const streams::IndexContents& index, std::size_t number) {
  const cf::FoundContents& contents = opened.store->contents();
  const std::vector<int>& dimensions = contents.variables[number].dimensions;
  return !dimensions.empty() &&
         contents.dimensions[static_cast<std::size_t>(dimensions.front())].name == index.header.time.name();
}

/// Returns the array of a field as its stream has made it, whatever the conventions say of its dimensions: a
/// field of latitudes is a coordinate for them, and the height of a slice (z, x) a level. The index tells
/// which of its dimensions are levels. Returns nothing if the array has other dimensions or another type.
Result<std::optional<CfField>> array_as_made(OpenedStore& opened, const streams::IndexContents& index,
                                             const streams::IndexField& field, std::size_t number) {
  CfField made;
  made.variable = number;
  const cf::FoundVariable& variable = opened.store->contents().variables[number];
  const zarr::ReadArray& array = opened.store->array(number);
  const int first = has_steps(opened, index, number) ? 1 : 0;
  if (first > 0) made.time = 0;
  std::vector<Index> expected = field.shape;
  if (array.shape.size() > expected.size() + static_cast<std::size_t>(first))
    expected.insert(expected.begin(), static_cast<Index>(field.levels.size()));
  if (!std::ranges::equal(array.shape | std::views::drop(first), expected) ||
      variable.type != cf::number_of(field.type) || (variable.text_bytes > 0) != is_text(field.type))
    return std::optional<CfField>();
  const bool has_levels = expected.size() > field.shape.size();
  if (!has_levels && field.levels.size() != 1) return std::optional<CfField>();
  if (has_levels) made.level = first;
  for (int d = first + (has_levels ? 1 : 0); d < first + static_cast<int>(expected.size()); ++d)
    made.plane.push_back(d);
  Result<cf::Unpacking> unpacking = cf::unpacking_of(variable, true);
  TR_TRY(unpacking.status());
  made.unpacking = std::move(*unpacking);
  if (array.fill_is_missing) made.unpacking.missing.push_back(array.fill);
  made.grid = static_cast<int>(opened.found.inventory.grids.size());
  opened.found.inventory.grids.push_back({field.shape, {}});
  return std::optional(std::move(made));
}

/// The arrays of a store that no field of its index has taken yet.
struct ArraysLeft {
  std::map<std::string, std::size_t> numbers;  // by name
  std::map<std::size_t, CfField> fields;       // what the conventions say, by the numbers of arrays
};

/// Returns the arrays that may be those of a field, the likeliest first. A stream names an array after its
/// field and, if another field has the same name, after the type of its levels, too. The arrays may be in
/// another order than the fields, as other tools may have rewritten the store.
std::vector<std::pair<std::string, std::size_t>> arrays_for(const streams::IndexField& field,
                                                            const ArraysLeft& left) {
  std::vector<std::pair<std::string, std::size_t>> arrays;
  const auto exact = left.numbers.find(field.name);
  if (exact != left.numbers.end()) arrays.push_back(*exact);
  const std::string begin = cat(field.name, "_", field.level_type);
  for (auto each = left.numbers.lower_bound(begin);
       each != left.numbers.end() && each->first.starts_with(begin); ++each)
    arrays.push_back(*each);
  std::ranges::stable_sort(arrays, {}, [](const auto& each) { return each.first.size(); });
  return arrays;
}

/// Moves what the conventions say of an array out of `left`, if it has the field's dimensions and type as its
/// stream has made them, or else makes a field of the array. Returns nothing if it is none.
Result<std::optional<CfField>> fitting_array(OpenedStore& opened, const streams::IndexContents& index,
                                             const streams::IndexField& field, std::size_t number,
                                             ArraysLeft& left) {
  const auto found = left.fields.find(number);
  if (found == left.fields.end()) return array_as_made(opened, index, field, number);
  CfField taken = found->second;
  const sources::Grid& grid = opened.found.inventory.grids[static_cast<std::size_t>(taken.grid)];
  const bool is_as_made = grid.shape == field.shape &&
                          (taken.time == 0) == has_steps(opened, index, number) &&
                          taken.unpacking.type == cf::number_of(field.type) &&
                          (taken.unpacking.text_bytes > 0) == is_text(field.type);
  if (!is_as_made) return array_as_made(opened, index, field, number);
  return std::optional(std::move(taken));
}

/// Takes the array of a field of the index out of `left`.
Result<CfField> take_array(OpenedStore& opened, const streams::IndexContents& index,
                           const streams::IndexField& field, ArraysLeft& left) {
  const auto arrays = arrays_for(field, left);
  for (const auto& [name, number] : arrays) {
    Result<std::optional<CfField>> fitting = fitting_array(opened, index, field, number, left);
    TR_TRY(fitting.status());
    if (!*fitting) continue;
    left.numbers.erase(name);
    return std::move(**fitting);
  }
  const auto& unread = opened.found.inventory.unread;
  const auto odd = std::ranges::find(unread, field.name, &sources::Unread::field);
  if (odd != unread.end()) return odd->why;
  if (arrays.empty())
    return Status(Code::corrupt,
                  cat("expected an array of the field '", field.name, "' of its index, got none"));
  const auto& [name, number] = arrays.front();
  const cf::Number type = opened.store->contents().variables[number].type;
  return Status(Code::corrupt,
                cat("array '", name, "': expected records of ", extents(field.shape), " of ",
                    cf::name_of(cf::number_of(field.type)), " as in its index, got an array of ",
                    extents(opened.store->array(number).shape), " of ", cf::name_of(type)));
}

/// Reduces the inventory of a store of our own to the records of committed steps, as its index lists them.
Status keep_committed(const Opening& opening, OpenedStore& opened) {
  const streams::IndexContents& index = *opening.index;
  std::vector<CfField> fields;
  ArraysLeft left;
  const auto& arrays = opened.store->contents().variables;
  for (std::size_t i = 0; i < arrays.size(); ++i) left.numbers.emplace(arrays[i].name, i);
  for (CfField& each : opened.found.fields) {
    const std::size_t number = each.variable;
    left.fields.emplace(number, std::move(each));
  }
  for (const streams::IndexField& each : index.header.fields) {
    Result<CfField> taken = take_array(opened, index, each, left);
    TR_TRY(taken.status().in(opening.path));
    fields.push_back(std::move(*taken));
  }
  OwnRecords records;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Grid& grid = opened.found.inventory.grids[static_cast<std::size_t>(fields[i].grid)];
    records.fields.push_back({index.header.fields[i].name, {}, grid, {}, {}, {}});
    const cf::FoundVariable& variable = opened.store->contents().variables[fields[i].variable];
    if (fields[i].time < 0) {
      const std::size_t levels = index.header.fields[i].levels.size();
      const int dimension =
          fields[i].level < 0 ? -1 : variable.dimensions[static_cast<std::size_t>(fields[i].level)];
      const Index there =
          dimension < 0 ? 1 : opened.store->contents().dimensions[static_cast<std::size_t>(dimension)].length;
      if (there != static_cast<Index>(levels))
        return Status(Code::corrupt, cat(opening.path, ": array '", variable.name, "': expected ",
                                         counted(levels, "level"), " as in its index, got ", there));
      for (Index level = 0; level < there; ++level)
        records.fields.back().always.push_back({static_cast<std::int64_t>(i), 0, level, 0});
      continue;
    }
    opened.store->reach(variable.dimensions[static_cast<std::size_t>(fields[i].time)],
                        std::ssize(index.steps));
  }
  Result<Inventory> inventory = inventory_of_own(index, records, "Zarr");
  TR_TRY(inventory.status().in(opening.path));
  std::size_t record = 0;
  for (std::size_t step = 0; step < index.steps.size(); ++step) {
    for (const streams::IndexRecord& each : index.steps[step].records)
      inventory->records[record++].place = {each.field, static_cast<std::int64_t>(step), each.level, 0};
  }
  opened.found.inventory = std::move(*inventory);
  opened.found.fields = std::move(fields);
  return {};
}

Result<OpenedStore> look_into_store(const Opening& opening) {
  return guarded([&]() -> Result<OpenedStore> {
    auto objects = storage::objects_at(opening.target, storage::OpenMode::read_regular)(opening.path);
    const Result<bool> is_ours = objects->exists(std::string(begun_with));
    OpenedStore opened{std::make_shared<ZarrStore>(std::move(objects)), {}};
    TR_TRY(opened.store->load());
    const cf::ReadNumbers numbers = [&](std::size_t variable) { return opened.store->numbers(variable); };
    const StoredBytes stored = [&](std::size_t variable, Bytes enough) {
      return opened.store->stored(variable, enough);
    };
    // Our own arrays of integers state no fill value as missing, but use that of NetCDF.
    Result<CfInventory> found = take_inventory(opened.store->contents(), numbers, is_ours.is_ok() && *is_ours,
                                               opening.index == nullptr ? stored : StoredBytes());
    // A store of ours is read as its index says, whatever the conventions make of its arrays.
    const bool has_index = opening.index != nullptr;
    if (!has_index || found.status().code() == Code::io) TR_TRY(found.status().in(opening.path));
    if (found.is_ok()) opened.found = std::move(*found);
    opened.found.inventory.format = "Zarr";
    std::vector<sources::Unread>& unread = opened.found.inventory.unread;
    std::ranges::copy(opened.store->unread(), std::back_inserter(unread));
    if (!has_index && opened.found.inventory.records.empty() && !unread.empty())
      return unread.front().why.in(opening.path);
    for (CfField& each : opened.found.fields) {
      const zarr::ReadArray& array = opened.store->array(each.variable);
      if (array.fill_is_missing) each.unpacking.missing.push_back(array.fill);
    }
    if (has_index) TR_TRY(keep_committed(opening, opened));
    return opened;
  });
}

class ZarrSource final : public CfSource {
 public:
  ZarrSource(const Opening& opening, OpenedStore opened)
      : CfSource(opening.path, "array", std::move(opened.found)),
        store_(std::move(opened.store)),
        is_committed_(opening.index != nullptr) {}

 private:
  [[nodiscard]] const cf::FoundContents& contents() const override { return store_->contents(); }
  Result<Index> read_record(const CfField& field, const std::vector<Index>& begin, const layout::Box& cut,
                            ElementType type, std::byte* values, Scratch& scratch) const override {
    return store_->read(field.variable, begin, field.plane, field.unpacking, cut, type, values, scratch,
                        is_committed_);
  }
  [[nodiscard]] Bytes record_bound(const CfField& field, const std::vector<Index>&,
                                   std::span<const Index>) const override {
    const zarr::ReadArray& array = store_->array(field.variable);
    return array.refused.is_ok() ? 4 * array.chunk_bytes() + (128 << 10) : 0;
  }

  std::shared_ptr<ZarrStore> store_;
  bool is_committed_ = false;
};

}  // namespace

Result<Inventory> scan(const Opening& opening) {
  Result<OpenedStore> opened = look_into_store(opening);
  TR_TRY(opened.status());
  return std::move(opened->found.inventory);
}

Result<std::shared_ptr<const Source>> make_source(const Opening& opening, Inventory) {
  Result<OpenedStore> opened = look_into_store(opening);
  TR_TRY(opened.status());
  return std::shared_ptr<const Source>(std::make_shared<ZarrSource>(opening, std::move(*opened)));
}

}  // namespace tailrace::zarr
