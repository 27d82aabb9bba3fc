// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>

#include "formats/netcdf4/library.hpp"
#include "formats/netcdf4/metadata.hpp"
#include "formats/netcdf4/read_driver.hpp"
#include "formats/netcdf4/superblock.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

using cf::FoundAttribute;
using cf::FoundVariable;
using cf::Number;

constexpr int most_groups_deep = 32;
constexpr std::size_t most_datasets = 100'000;
constexpr hsize_t most_attribute_bytes = hsize_t{16} << 20;
constexpr Bytes most_strings = 65'536, most_bytes_held = Bytes{4} << 20;  // of a variable
/// netCDF-C puts this before the name of a variable that has the name of a dimension, but is not its
/// coordinate.
constexpr std::string_view no_coordinate = "_nc4_non_coord_";
constexpr std::string_view only_dimension = "This is a netCDF dimension but not a netCDF variable";

/// The address of an object in the file. It differs from those of all other objects.
using Identity = std::array<unsigned char, 16>;

Identity identity_of(hid_t object) {
  Identity identity{};
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  if (H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0)
    std::memcpy(identity.data(), &info.token, sizeof info.token);
#else
  H5O_info_t info;
  if (H5Oget_info2(object, &info, H5O_INFO_BASIC) >= 0)
    std::memcpy(identity.data(), &info.addr, sizeof info.addr);
#endif
  return identity;
}

Number number_of_type(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT) {
    for (const hid_t each : {H5T_IEEE_F32LE, H5T_IEEE_F32BE}) {
      if (H5Tequal(type, each) > 0) return Number::float32;
    }
    for (const hid_t each : {H5T_IEEE_F64LE, H5T_IEEE_F64BE}) {
      if (H5Tequal(type, each) > 0) return Number::float64;
    }
    return Number::none;
  }
  if (kind != H5T_INTEGER || H5Tget_precision(type) != 8 * size) return Number::none;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (size) {
    case 1:
      return is_signed ? Number::int8 : Number::uint8;
    case 2:
      return is_signed ? Number::int16 : Number::uint16;
    case 4:
      return is_signed ? Number::int32 : Number::uint32;
    case 8:
      return is_signed ? Number::int64 : Number::uint64;
    default:
      return Number::none;
  }
}

/// Returns the size of texts of one length, or 0 for any other type.
Bytes text_bytes_of(hid_t type) {
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0) return 0;
  const auto bytes = static_cast<Bytes>(H5Tget_size(type));
  return bytes <= most_text ? bytes : 0;
}

hid_t native_of(Number type) {
  switch (type) {
    case Number::int8:
      return H5T_NATIVE_INT8;
    case Number::uint8:
      return H5T_NATIVE_UINT8;
    case Number::int16:
      return H5T_NATIVE_INT16;
    case Number::uint16:
      return H5T_NATIVE_UINT16;
    case Number::int32:
      return H5T_NATIVE_INT32;
    case Number::uint32:
      return H5T_NATIVE_UINT32;
    case Number::int64:
      return H5T_NATIVE_INT64;
    case Number::uint64:
      return H5T_NATIVE_UINT64;
    case Number::float32:
      return H5T_NATIVE_FLOAT;
    case Number::float64:
      return H5T_NATIVE_DOUBLE;
    case Number::none:
      break;
  }
  return -1;
}

Handle open_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  return {H5Aopen(object, name, H5P_DEFAULT), H5Aclose};
}

/// Reads an attribute's text of fixed or variable length. If there are several texts, returns the first.
std::string read_text(hid_t attribute, hid_t type, hssize_t count) {
  if (H5Tis_variable_str(type) > 0) {
    const Handle space(H5Aget_space(attribute), H5Sclose);
    std::vector<char*> texts(static_cast<std::size_t>(count), nullptr);
    if (H5Aread(attribute, type, texts.data()) < 0) return "";
    const std::string text = texts.front() == nullptr ? "" : texts.front();
    H5Dvlen_reclaim(type, space.id(), H5P_DEFAULT, texts.data());
    return text;
  }
  std::string text(H5Tget_size(type) * static_cast<std::size_t>(count), '\0');
  if (H5Aread(attribute, type, text.data()) < 0) return "";
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

/// Reads an attribute with a text or with numbers. Returns nothing for other types, and for very large
/// attributes.
std::optional<FoundAttribute> read_attribute(hid_t attribute, std::string name) {
  const Handle type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  if (!type.is_ok() || count <= 0 || H5Aget_storage_size(attribute) > most_attribute_bytes)
    return std::nullopt;
  FoundAttribute found{std::move(name), Number::none, {}, {}};
  if (H5Tget_class(type.id()) == H5T_STRING) {
    found.text = read_text(attribute, type.id(), count);
    return found;
  }
  found.type = number_of_type(type.id());
  if (found.type == Number::none) return std::nullopt;
  found.values.resize(static_cast<std::size_t>(count * cf::size_of(found.type)));
  if (H5Aread(attribute, native_of(found.type), found.values.data()) < 0) return std::nullopt;
  return found;
}

std::vector<FoundAttribute> read_attributes(hid_t object) {
  std::vector<FoundAttribute> attributes;
  for (hsize_t i = 0;; ++i) {
    const Handle each(H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
                      H5Aclose);
    if (!each.is_ok()) return attributes;
    std::array<char, 1025> name{};
    if (H5Aget_name(each.id(), name.size() - 1, name.data()) < 0) continue;
    if (auto found = read_attribute(each.id(), name.data()); found) attributes.push_back(std::move(*found));
  }
}

std::string text_attribute(hid_t object, const char* name) {
  const Handle attribute = open_attribute(object, name);
  if (!attribute.is_ok()) return "";
  const auto found = read_attribute(attribute.id(), name);
  return found ? found->text : "";
}

Result<std::vector<Index>> extents_of(hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  std::vector<hsize_t> lengths(static_cast<std::size_t>(std::max(rank, 0)));
  if (rank > 0) H5Sget_simple_extent_dims(space.id(), lengths.data(), nullptr);
  for (const hsize_t each : lengths) {
    if (each > static_cast<hsize_t>(std::numeric_limits<Index>::max()))
      return Status(Code::corrupt, cat("expected dimensions of less than 2^63 elements, got ", each));
  }
  return std::vector<Index>(lengths.begin(), lengths.end());
}

/// Returns the number of a dimension as an integer. If it is out of range, returns -1, which no dimension
/// has.
int number_of_dimension(double number) { return number >= 0 && number < 1e9 ? static_cast<int>(number) : -1; }

std::vector<Filter> filters_of(hid_t creation) {
  std::vector<Filter> filters;
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t many = Filter::most_values;
    std::array<char, 257> name{};
    Filter each;
    each.values.resize(many);
    each.id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &many, each.values.data(),
                             name.size() - 1, name.data(), &config);
    each.name = name.data();
    each.values.resize(std::min(many, each.values.size()));
    filters.push_back(std::move(each));
  }
  return filters;
}

class LibraryReader final : public Reader {
 public:
  /// `read` and `size` are those of the file without its user block, which has `begin` bytes.
  LibraryReader(codec::ReadBytes read, Bytes begin, Bytes size)
      : file_(std::move(read), size), begin_(begin), size_(size) {}
  ~LibraryReader() override {
    const std::lock_guard guard(library_mutex());
    const Quiet quiet;
    found_.clear();
    hdf5_.close();
    // Unregisters the driver here, because the destructor of file_ runs without the mutex.
    file_.close();
  }

  Status open();
  Result<std::optional<StoredChunk>> chunk_at(std::size_t variable,
                                              std::span<const Index> begin) const override;
  [[nodiscard]] Bytes stored_bytes(std::size_t variable) const override;

 private:
  struct Found {
    std::string name;
    Handle dataset;
    std::vector<Index> extents;
    int dimension = -1;  // the dimension of which the dataset is the scale, or -1
    bool is_variable = true;
  };
  [[nodiscard]] Status error(std::string_view what) const {
    // An error of storage comes first: the library would say only that a read failed.
    if (!file_.error().is_ok()) return file_.error();
    const Status status = failed(what);
    // A library that meets a newer version of the file format names a "version" in its error.
    if (is_open_ || status.text().find(" version") == std::string::npos)
      return {Code::corrupt, status.text()};
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    return {Code::unsupported,
            cat(status.text(), "; the file was written by a newer HDF5 than this one, ", major, ".", minor,
                ".", release,
                ", or is damaged. `h5repack -j0 -k2 IN OUT` of the newer one writes a file "
                "that older ones read")};
  }
  Status collect(hid_t group, const std::string& prefix, int depth);
  Status collect_link(hid_t group, const std::string& name, const std::string& prefix, int depth);
  void add_dimension(Found& found);
  Status add_variable(Found& found);
  Result<std::vector<int>> dimensions_of(const Found& found);
  std::vector<int> listed_dimensions(const Found& found);
  int phony_dimension(Index length, const std::vector<int>& taken);
  static void set_texts(Bytes bytes, FoundVariable& variable, Dataset& out);
  Status describe(hid_t dataset, const FoundVariable& variable, Dataset& out) const;
  Status hold_values(hid_t dataset, hid_t type, Dataset& out) const;
  Status hold_strings(hid_t dataset, FoundVariable& variable, Dataset& out) const;

  ReadFile file_;
  Bytes begin_;
  Bytes size_;
  Handle hdf5_;
  std::vector<Found> found_;
  std::vector<std::size_t> of_variables_;  // in found_
  std::map<Identity, int> scales_;         // scale -> dimension
  std::map<int, int> by_number_;           // _Netcdf4Dimid -> dimension
  std::map<Identity, bool> groups_;        // those that were visited
  bool is_open_ = false;                   // true once all metadata were read
};

Status LibraryReader::collect_link(hid_t group, const std::string& name, const std::string& prefix,
                                   int depth) {
  H5L_info_t link;
  if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0)
    return error(cat("look at '", prefix, name, "'"));
  // Soft links lead to names that are found anyway, and external links to other files.
  if (link.type != H5L_TYPE_HARD) return {};
  Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object.is_ok()) return error(cat("open '", prefix, name, "'"));
  const H5I_type_t kind = H5Iget_type(object.id());
  if (kind == H5I_GROUP) return collect(object.id(), cat(prefix, name, "/"), depth + 1);
  if (kind != H5I_DATASET) return {};
  if (found_.size() >= most_datasets)
    return {Code::corrupt, cat("expected at most ", most_datasets, " variables, got more")};
  Found found{cat(prefix, name), std::move(object), {}, -1, true};
  Result<std::vector<Index>> extents = extents_of(found.dataset.id());
  TR_TRY(extents.status().in(cat("variable '", found.name, "'")));
  found.extents = std::move(*extents);
  if (text_attribute(found.dataset.id(), "CLASS") == "DIMENSION_SCALE" && !found.extents.empty())
    add_dimension(found);
  found_.push_back(std::move(found));
  return {};
}

Status LibraryReader::collect(hid_t group, const std::string& prefix, int depth) {
  if (depth > most_groups_deep || !groups_.emplace(identity_of(group), true).second) return {};
  H5G_info_t info;
  if (H5Gget_info(group, &info) < 0) return error(cat("read the group '", prefix, "'"));
  const Handle creation(H5Gget_create_plist(group), H5Pclose);
  unsigned order = 0;
  if (H5Pget_link_creation_order(creation.id(), &order) < 0) order = 0;
  const H5_index_t by = (order & H5P_CRT_ORDER_INDEXED) != 0 ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    std::array<char, 1025> name{};
    if (H5Lget_name_by_idx(group, ".", by, H5_ITER_INC, i, name.data(), name.size() - 1, H5P_DEFAULT) < 0)
      return error(cat("read the names in the group '", prefix, "'"));
    TR_TRY(collect_link(group, name.data(), prefix, depth));
  }
  return {};
}

void LibraryReader::add_dimension(Found& found) {
  const hid_t dataset = found.dataset.id();
  found.dimension = static_cast<int>(contents_.dimensions.size());
  std::string name = found.name;
  const std::size_t slash = name.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  if (name.compare(begin, no_coordinate.size(), no_coordinate) == 0) name.erase(begin, no_coordinate.size());
  contents_.dimensions.push_back({name, found.extents.front()});
  scales_.emplace(identity_of(dataset), found.dimension);
  found.is_variable = !text_attribute(dataset, "NAME").starts_with(only_dimension);
  // read_attribute() makes room for all numbers of the attribute. A damaged file may have many, and H5Aread
  // does not ask how much room there is.
  const Handle attribute = open_attribute(dataset, "_Netcdf4Dimid");
  const auto numbers = attribute.is_ok() ? read_attribute(attribute.id(), "") : std::nullopt;
  if (!numbers || numbers->numbers().size() != 1) return;
  const int number = number_of_dimension(numbers->numbers().front());
  if (number >= 0) by_number_.emplace(number, found.dimension);
}

/// Returns the dimensions that a dataset's DIMENSION_LIST names, and -1 for each one that it does not name.
std::vector<int> LibraryReader::listed_dimensions(const Found& found) {
  std::vector<int> dimensions(found.extents.size(), -1);
  const Handle list = open_attribute(found.dataset.id(), "DIMENSION_LIST");
  if (!list.is_ok()) return dimensions;
  const Handle type(H5Aget_type(list.id()), H5Tclose), space(H5Aget_space(list.id()), H5Sclose);
  const Handle base(H5Tget_class(type.id()) == H5T_VLEN ? H5Tget_super(type.id()) : -1, H5Tclose);
  if (!base.is_ok() || H5Tequal(base.id(), H5T_STD_REF_OBJ) <= 0 ||
      H5Sget_simple_extent_npoints(space.id()) != std::ssize(dimensions))
    return dimensions;
  std::vector<hvl_t> lists(dimensions.size(), hvl_t{0, nullptr});
  if (H5Aread(list.id(), type.id(), lists.data()) < 0) return dimensions;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].len == 0 || lists[i].p == nullptr) continue;
    const Handle scale(H5Rdereference2(found.dataset.id(), H5P_DEFAULT, H5R_OBJECT, lists[i].p), H5Oclose);
    const auto known = scale.is_ok() ? scales_.find(identity_of(scale.id())) : scales_.end();
    if (known != scales_.end()) dimensions[i] = known->second;
  }
  H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, lists.data());
  return dimensions;
}

/// Returns a dimension of this length for a dataset that names no scale. Like the NetCDF library, takes one
/// made for another dataset, unless it is among `taken`, or makes a new one.
int LibraryReader::phony_dimension(Index length, const std::vector<int>& taken) {
  for (std::size_t i = 0; i < contents_.dimensions.size(); ++i) {
    const cf::Dimension& each = contents_.dimensions[i];
    if (each.name.starts_with("phony_dim_") && each.length == length &&
        std::ranges::count(taken, static_cast<int>(i)) == 0)
      return static_cast<int>(i);
  }
  contents_.dimensions.push_back({cat("phony_dim_", contents_.dimensions.size()), length});
  return static_cast<int>(contents_.dimensions.size()) - 1;
}

Result<std::vector<int>> LibraryReader::dimensions_of(const Found& found) {
  std::vector<int> dimensions;
  if (found.dimension >= 0 && found.extents.size() == 1) return std::vector<int>{found.dimension};
  if (found.dimension >= 0) {
    const Handle attribute = open_attribute(found.dataset.id(), "_Netcdf4Coordinates");
    const auto numbers = attribute.is_ok() ? read_attribute(attribute.id(), "") : std::nullopt;
    for (const double each : numbers ? numbers->numbers() : std::vector<double>()) {
      const auto known = by_number_.find(number_of_dimension(each));
      if (known != by_number_.end()) dimensions.push_back(known->second);
    }
  }
  if (dimensions.size() != found.extents.size()) dimensions = listed_dimensions(found);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] < 0) dimensions[i] = phony_dimension(found.extents[i], dimensions);
    // Datasets with the same unlimited dimension may have different lengths. The longest one counts.
    Index& length = contents_.dimensions[static_cast<std::size_t>(dimensions[i])].length;
    length = std::max(length, found.extents[i]);
  }
  return dimensions;
}

/// Reads the elements of a small dataset that lies in the metadata.
Status LibraryReader::hold_values(hid_t dataset, hid_t type, Dataset& out) const {
  Bytes bytes = std::ssize(out.fill);
  for (const Index each : out.shape) {
    if (__builtin_mul_overflow(bytes, each, &bytes) || bytes > (1 << 20))
      return {Code::corrupt, "expected elements of at most 1 MiB in the metadata, got more"};
  }
  out.values.resize(static_cast<std::size_t>(bytes));
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.values.data()) < 0)
    return error("read elements in the metadata");
  out.kind = Dataset::Kind::held;
  return {};
}

Status too_many_strings(std::string_view got) {
  return {Code::unsupported,
          cat("expected at most ", most_strings, " texts of any length (string), none beyond ", most_text,
              " bytes, of together ", size_text(most_bytes_held), ", got ", got,
              ": write them as arrays of char")};
}

/// Returns how many texts of any length a variable has, or an error if a reader cannot hold them.
Result<Bytes> number_of_strings(hid_t dataset, hid_t type, hid_t space, const std::vector<Index>& shape) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  std::vector<hsize_t> chunk(shape.size(), 1);
  if (H5Pget_layout(creation.id()) == H5D_CHUNKED &&
      H5Pget_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()) < 0)
    return failed("read the shape of its chunks");
  Bytes count = 1, in_chunk = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (__builtin_mul_overflow(count, shape[d], &count) || count > most_strings ||
        __builtin_mul_overflow(in_chunk, chunk[d], &in_chunk) || in_chunk > 16 * most_strings)
      return too_many_strings("more");
  }
  hsize_t bytes = 0;
  if (count > 0 && H5Dvlen_get_buf_size(dataset, type, space, &bytes) < 0)
    return failed("read the lengths of its texts");
  if (bytes > hsize_t{most_bytes_held}) return too_many_strings(counted(static_cast<Bytes>(bytes), "byte"));
  return count;
}

/// Reads texts of any length, wherever they lie in the file.
Result<std::vector<std::string>> read_strings(hid_t dataset, const std::vector<Index>& shape) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), stored(H5Dget_type(dataset), H5Tclose);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  H5Tset_size(type.id(), H5T_VARIABLE);
  H5Tset_cset(type.id(), H5Tget_cset(stored.id()));
  const Result<Bytes> count = number_of_strings(dataset, type.id(), space.id(), shape);
  TR_TRY(count.status());
  std::vector<std::string> strings(static_cast<std::size_t>(*count));
  if (strings.empty()) return strings;
  std::vector<char*> texts(strings.size(), nullptr);
  if (H5Dread(dataset, type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, static_cast<void*>(texts.data())) < 0)
    return failed("read its texts");
  std::ranges::transform(texts, strings.begin(),
                         [](const char* each) { return each == nullptr ? "" : each; });
  H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, static_cast<void*>(texts.data()));
  return strings;
}

/// Reads the texts of any length of a variable, and holds them as texts of the longest one's length.
Status LibraryReader::hold_strings(hid_t dataset, FoundVariable& variable, Dataset& out) const {
  variable.text_bytes = 1;
  const Result<std::vector<std::string>> strings = read_strings(dataset, out.shape);
  TR_TRY(file_.error());
  out.refused = strings.status();
  Bytes longest = 1;
  if (out.refused.is_ok()) {
    for (const std::string& each : *strings) longest = std::max(longest, std::ssize(each));
    if (longest > most_text || longest * std::ssize(*strings) > most_bytes_held)
      out.refused = too_many_strings(cat("texts of ", counted(longest, "byte")));
  }
  if (out.refused.is_ok()) {
    variable.text_bytes = longest;
    for (const std::string& each : *strings) {
      const auto bytes = std::as_bytes(std::span(each));
      out.values.insert(out.values.end(), bytes.begin(), bytes.end());
      out.values.resize(out.values.size() + static_cast<std::size_t>(longest) - bytes.size());
    }
    out.kind = Dataset::Kind::held;
  }
  out.fill.resize(static_cast<std::size_t>(variable.text_bytes));
  return {};
}

Status LibraryReader::describe(hid_t dataset, const FoundVariable& variable, Dataset& out) const {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose), stored(H5Dget_type(dataset), H5Tclose);
  out.order = H5Tget_order(stored.id()) == H5T_ORDER_BE ? std::endian::big : std::endian::little;
  const bool is_text = variable.text_bytes > 0;
  if (is_text) out.order = std::endian::native;
  out.fill.resize(static_cast<std::size_t>(variable.element_bytes()));
  if (!is_text && H5Pget_fill_value(creation.id(), native_of(variable.type), out.fill.data()) < 0)
    std::ranges::fill(out.fill, std::byte{});
  Bytes all = std::ssize(out.fill);
  for (const Index each : out.shape) {
    if (__builtin_mul_overflow(all, each, &all))
      return {Code::corrupt, "expected less than 2^63 bytes, got more"};
  }
  switch (H5Pget_layout(creation.id())) {
    case H5D_COMPACT:
      return hold_values(dataset, is_text ? stored.id() : native_of(variable.type), out);
    case H5D_CONTIGUOUS: {
      if (H5Pget_external_count(creation.id()) > 0) {
        out.refused = {Code::unsupported, "its elements lie in another file: expected them in this one"};
        return {};
      }
      const haddr_t offset = H5Dget_offset(dataset);
      if (offset == HADDR_UNDEF) return {};  // nothing was written
      out.kind = Dataset::Kind::whole;
      out.offset = begin_ + static_cast<Bytes>(offset);
      return {};
    }
    case H5D_CHUNKED: {
      std::vector<hsize_t> lengths(out.shape.size() + (out.along_text > 0 ? 1 : 0));
      if (H5Pget_chunk(creation.id(), static_cast<int>(lengths.size()), lengths.data()) !=
          static_cast<int>(lengths.size()))
        return error("read the shape of chunks");
      const bool cuts_texts = out.along_text > 0 && lengths.back() != static_cast<hsize_t>(out.along_text);
      if (out.along_text > 0) lengths.pop_back();
      out.chunk.assign(lengths.begin(), lengths.end());
      out.filters = filters_of(creation.id());
      out.kind = Dataset::Kind::chunked;
      out.refused = check_filters(out);
      if (cuts_texts)
        out.refused = {Code::unsupported, "its chunks end within texts: expected whole texts in each chunk"};
      if (out.refused.is_ok() && out.chunk_bytes() > most_chunk_bytes)
        out.refused = {Code::unsupported,
                       cat("expected chunks of at most ", size_text(most_chunk_bytes), ", got larger ones")};
      return {};
    }
    default:
      out.refused = {Code::unsupported,
                     "its elements lie in other datasets (a virtual dataset): expected them in the file"};
      return {};
  }
}

/// Sets what tells of texts. netCDF-C stores the bytes of a text as elements along the last dimension.
void LibraryReader::set_texts(Bytes bytes, FoundVariable& variable, Dataset& out) {
  variable.text_bytes = bytes;
  if (bytes > 1 || out.shape.empty()) return;
  variable.text_bytes = out.shape.back() <= most_text ? out.shape.back() : 0;
  if (variable.text_bytes == 0) return;
  out.along_text = out.shape.back();
  out.shape.pop_back();
  variable.dimensions.pop_back();
}

Status LibraryReader::add_variable(Found& found) {
  if (!found.is_variable) return {};
  const hid_t dataset = found.dataset.id();
  FoundVariable variable;
  variable.name = found.name;
  const std::size_t slash = variable.name.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  if (variable.name.compare(begin, no_coordinate.size(), no_coordinate) == 0)
    variable.name.erase(begin, no_coordinate.size());
  const Handle type(H5Dget_type(dataset), H5Tclose);
  variable.type = number_of_type(type.id());
  const Handle space(H5Dget_space(dataset), H5Sclose);
  Bytes text = text_bytes_of(type.id());
  const bool is_null = H5Sget_simple_extent_type(space.id()) == H5S_NULL;
  if (is_null) {
    variable.type = Number::none;
    text = 0;
  }
  Result<std::vector<int>> dimensions = dimensions_of(found);
  TR_TRY(dimensions.status());
  variable.dimensions = std::move(*dimensions);
  variable.attributes = read_attributes(dataset);
  Dataset description;
  description.shape = found.extents;
  if (text > 0) set_texts(text, variable, description);
  const bool has_strings = !is_null && H5Tis_variable_str(type.id()) > 0;
  if (has_strings) {
    TR_TRY(hold_strings(dataset, variable, description).in(cat("variable '", variable.name, "'")));
  } else if (variable.element_bytes() > 0) {
    TR_TRY(describe(dataset, variable, description).in(cat("variable '", variable.name, "'")));
  }
  contents_.variables.push_back(std::move(variable));
  datasets_.push_back(std::move(description));
  of_variables_.push_back(static_cast<std::size_t>(&found - found_.data()));
  return {};
}

Status LibraryReader::open() {
  const std::lock_guard guard(library_mutex());
  const Quiet quiet;
  const Handle access(file_.access(), H5Pclose);
  if (!access.is_ok()) return error("set up a file");
  hdf5_ = Handle(H5Fopen("a file of storage", H5F_ACC_RDONLY, access.id()), H5Fclose);
  if (!hdf5_.is_ok()) return error("open the file");
  const Handle root(H5Gopen2(hdf5_.id(), "/", H5P_DEFAULT), H5Gclose);
  if (!root.is_ok()) return error("read the root group");
  contents_.attributes = read_attributes(root.id());
  TR_TRY(collect(root.id(), "", 0));
  for (Found& each : found_) TR_TRY(add_variable(each));
  is_open_ = true;
  return file_.error();
}

Bytes LibraryReader::stored_bytes(std::size_t variable) const {
  const std::lock_guard guard(library_mutex());
  const Quiet quiet;
  return static_cast<Bytes>(
      std::min<hsize_t>(H5Dget_storage_size(found_[of_variables_[variable]].dataset.id()),
                        static_cast<hsize_t>(std::numeric_limits<Bytes>::max())));
}

#if H5_VERSION_GE(1, 10, 5)
Result<std::optional<StoredChunk>> LibraryReader::chunk_at(std::size_t variable,
                                                           std::span<const Index> begin) const {
  std::vector<hsize_t> at(begin.begin(), begin.end());
  if (datasets_[variable].along_text > 0) at.push_back(0);
  const std::lock_guard guard(library_mutex());
  const Quiet quiet;
  unsigned left_out = 0;
  haddr_t offset = HADDR_UNDEF;
  hsize_t size = 0;
  if (H5Dget_chunk_info_by_coord(found_[of_variables_[variable]].dataset.id(), at.data(), &left_out, &offset,
                                 &size) < 0)
    return error("find a chunk");
  if (offset == HADDR_UNDEF || size == 0) return std::optional<StoredChunk>();
  if (size > static_cast<hsize_t>(size_) || offset > static_cast<haddr_t>(size_) - size)
    return Status(Code::corrupt, cat("expected a chunk inside of the file's ", counted(size_, "byte"),
                                     ", got one of ", size, " at byte ", offset));
  return std::optional(StoredChunk{begin_ + static_cast<Bytes>(offset), static_cast<Bytes>(size), left_out});
}
#else
Result<std::optional<StoredChunk>> LibraryReader::chunk_at(std::size_t, std::span<const Index>) const {
  return Status(Code::unsupported,
                cat("chunks are found by HDF5 1.10.5 or later, and this build has ", H5_VERS_INFO));
}
#endif

}  // namespace

Result<std::shared_ptr<Reader>> Reader::open(codec::ReadBytes read, Bytes size) {
  TR_TRY(check_library());
  const Result<std::optional<Bytes>> found = find_superblock(read, size);
  TR_TRY(found.status());
  if (!*found)
    return Status(Code::corrupt, "expected the signature of HDF5 at byte 0, 512, 1024, 2048 ..., got none");
  // Addresses in the file count from the superblock. Versions of the library do not agree whether the places
  // of chunks that they return count from there, too. So the library gets the file without its user block.
  const Bytes begin = **found;
  const codec::ReadBytes behind = [read = std::move(read), begin](std::span<std::byte> to, Bytes offset) {
    return read(to, begin + offset);
  };
  const auto reader = std::make_shared<LibraryReader>(behind, begin, size - begin);
  TR_TRY(reader->open());
  return std::shared_ptr<Reader>(reader);
}

}  // namespace tailrace::netcdf4
