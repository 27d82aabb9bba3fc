// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/metadata.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cstdio>

#include "formats/netcdf4/head.hpp"
#include "formats/netcdf4/image.hpp"
#include "formats/netcdf4/library.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

using cf::Attribute;
using cf::Contents;
using cf::Dimension;
using cf::Type;
using cf::Variable;

hid_t type_in_file(Type type) {
  switch (type) {
    case Type::int8:
      return H5T_STD_I8LE;
    case Type::text:
      return H5T_C_S1;
    case Type::uint8:
      return H5T_STD_U8LE;
    case Type::int16:
      return H5T_STD_I16LE;
    case Type::uint16:
      return H5T_STD_U16LE;
    case Type::int32:
      return H5T_STD_I32LE;
    case Type::uint32:
      return H5T_STD_U32LE;
    case Type::int64:
      return H5T_STD_I64LE;
    case Type::uint64:
      return H5T_STD_U64LE;
    case Type::float32:
      return H5T_IEEE_F32LE;
    case Type::float64:
      return H5T_IEEE_F64LE;
  }
  return -1;
}

/// Returns the type of values in memory: the module cf makes them big-endian.
hid_t big_endian(Type type) {
  switch (type) {
    case Type::int8:
      return H5T_STD_I8BE;
    case Type::text:
      return H5T_C_S1;
    case Type::uint8:
      return H5T_STD_U8BE;
    case Type::int16:
      return H5T_STD_I16BE;
    case Type::uint16:
      return H5T_STD_U16BE;
    case Type::int32:
      return H5T_STD_I32BE;
    case Type::uint32:
      return H5T_STD_U32BE;
    case Type::int64:
      return H5T_STD_I64BE;
    case Type::uint64:
      return H5T_STD_U64BE;
    case Type::float32:
      return H5T_IEEE_F32BE;
    case Type::float64:
      return H5T_IEEE_F64BE;
  }
  return -1;
}

/// Adds an attribute as netCDF-C does: a text is a scalar, and numbers are a list.
Status add_attribute(hid_t object, const Attribute& attribute) {
  const bool is_text = attribute.type == Type::text;
  Handle type(H5Tcopy(is_text ? H5T_C_S1 : type_in_file(attribute.type)), H5Tclose);
  const auto bytes = static_cast<Bytes>(attribute.values.size());
  if (is_text && bytes > 0) H5Tset_size(type.id(), attribute.values.size());
  const auto count = static_cast<hsize_t>(bytes / cf::size_of(attribute.type));
  const Handle space(bytes == 0 ? H5Screate(H5S_NULL)
                     : is_text  ? H5Screate(H5S_SCALAR)
                                : H5Screate_simple(1, &count, nullptr),
                     H5Sclose);
  const Handle made(
      H5Acreate2(object, attribute.name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const hid_t in_memory = is_text ? type.id() : big_endian(attribute.type);
  if (!made.is_ok() || (bytes > 0 && H5Awrite(made.id(), in_memory, attribute.values.data()) < 0))
    return failed(cat("write the attribute '", attribute.name, "'"));
  return {};
}

/// Adds a text as HDF5's high-level library does, with a zero at its end.
Status add_terminated(hid_t object, const char* name, const std::string& text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type.id(), text.size() + 1);
  const Handle made(H5Acreate2(object, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!made.is_ok() || H5Awrite(made.id(), type.id(), text.c_str()) < 0)
    return failed(cat("write the attribute '", name, "'"));
  return {};
}

Result<hobj_ref_t> reference_to(hid_t object) {
  hobj_ref_t reference{};
  if (H5Rcreate(&reference, object, ".", H5R_OBJECT, -1) < 0) return failed("refer to a dataset");
  return reference;
}

/// An entry of a scale's REFERENCE_LIST, which names a dimension of a variable. It has the layout of HDF5's
/// ds_list_t.
struct Use {
  hobj_ref_t variable;
  std::int32_t dimension;
  std::int32_t padding;  // set to 0, because the library writes these bytes, too
};
static_assert(sizeof(Use) == 16 && offsetof(Use, dimension) == 8);

/// Adds the attribute DIMENSION_LIST, which names a variable's scales, one for each dimension.
Status add_dimension_list(hid_t variable, std::vector<hobj_ref_t>& scales) {
  const Handle type(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose);
  const hsize_t rank = scales.size();
  const Handle space(H5Screate_simple(1, &rank, nullptr), H5Sclose);
  std::vector<hvl_t> lists;
  for (hobj_ref_t& each : scales) lists.push_back({1, &each});
  const Handle made(H5Acreate2(variable, "DIMENSION_LIST", type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                    H5Aclose);
  if (made.is_ok() && H5Awrite(made.id(), type.id(), lists.data()) >= 0) return {};
  return failed("name the dimensions of a variable");
}

/// Adds the attribute REFERENCE_LIST, which names the variables that have the dimension of a scale.
Status add_reference_list(hid_t scale, const std::vector<Use>& uses) {
  const auto make_type = [](hid_t number) {
    Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Use)), H5Tclose);
    H5Tinsert(type.id(), "dataset", offsetof(Use, variable), H5T_STD_REF_OBJ);
    H5Tinsert(type.id(), "dimension", offsetof(Use, dimension), number);
    return type;
  };
  const Handle in_file = make_type(H5T_STD_I32LE), in_memory = make_type(H5T_NATIVE_INT32);
  const hsize_t count = uses.size();
  const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  const Handle made(H5Acreate2(scale, "REFERENCE_LIST", in_file.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                    H5Aclose);
  if (made.is_ok() && H5Awrite(made.id(), in_memory.id(), uses.data()) >= 0) return {};
  return failed("name the variables that have a dimension");
}

Status add_number(hid_t object, const char* name, int value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle made(H5Acreate2(object, name, H5T_STD_I32LE, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!made.is_ok() || H5Awrite(made.id(), H5T_NATIVE_INT, &value) < 0)
    return failed(cat("write the attribute '", name, "'"));
  return {};
}

/// Makes one file in memory. It creates each variable, and ties it to the dimension scales by which netCDF-C
/// knows dimensions (HDF5's "Dimension Scale Specification"). The attributes are those that HDF5's high-level
/// library would write. That library is not used: it reads and writes a list anew for each variable that it
/// adds, and leaves whatever its stack holds in the padding.
class Maker {
 public:
  explicit Maker(const Description& description)
      : description_(description),
        contents_(*description.contents),
        image_(description.data_begin, description.data_end),
        datasets_(contents_.variables.size()),
        scales_(contents_.dimensions.size(), -1),
        uses_(scales_.size()) {}

  Result<codec::Ending> make() {
    TR_TRY(create_file());
    for (std::size_t i = first_dimension(); i < contents_.dimensions.size(); ++i) TR_TRY(add_dimension(i));
    for (std::size_t i = 0; i < contents_.variables.size(); ++i) {
      if (!contents_.is_in_file(contents_.variables[i])) continue;
      if (!datasets_[i].is_ok()) TR_TRY(add_variable(i));
      TR_TRY(name_dimensions(i));
    }
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      if (!uses_[i].empty())
        TR_TRY(add_reference_list(scales_[i], uses_[i]).in(contents_.dimensions[i].name));
    }
    for (const Description::Times& each : description_.times) TR_TRY(write_times(each));
    for (const Description::Field& each : description_.fields) {
      if (each.record != nullptr) TR_TRY(place_chunks(each));
    }
    return finish();
  }

 private:
  Status create_file() {
    const Handle access(image_.access(), H5Pclose);
    const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    constexpr unsigned ordered = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    const bool set = access.is_ok() && creation.is_ok() &&
                     H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0 &&
                     H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG) >= 0 &&
                     H5Pset_link_creation_order(creation.id(), ordered) >= 0 &&
                     H5Pset_attr_creation_order(creation.id(), ordered) >= 0 &&
                     H5Pset_obj_track_times(creation.id(), false) >= 0;
    if (!set) return failed("set the properties of a file");
    file_ = Handle(H5Fcreate("in memory", H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
    if (!file_.is_ok()) return failed("begin a file in memory");
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    // The number behind `tailrace` is the version of the way in which this module writes files.
    const std::string origin = cat("version=2,tailrace=1,hdf5=", major, ".", minor, ".", release);
    TR_TRY(add_attribute(file_.id(), Attribute::text("_NCProperties", origin)));
    for (const Attribute& each : contents_.attributes) TR_TRY(add_attribute(file_.id(), each));
    return {};
  }

  /// Returns the number of the first dimension that the file has.
  [[nodiscard]] std::size_t first_dimension() const { return contents_.has_records ? 0 : 1; }

  [[nodiscard]] static Handle creation_list() {
    Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(list.id(), false);
    H5Pset_attr_creation_order(list.id(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    return list;
  }

  /// Adds the scale of a dimension: the coordinate variable of the same name, or else a dataset that readers
  /// do not take for a variable.
  Status add_dimension(std::size_t number) {
    const Dimension& dimension = contents_.dimensions[number];
    const auto own = std::ranges::find_if(contents_.variables, [&](const Variable& each) {
      return each.name == dimension.name && each.dimensions == std::vector<int>{static_cast<int>(number)};
    });
    std::string name = dimension.name;
    if (own != contents_.variables.end()) {
      const auto variable = static_cast<std::size_t>(own - contents_.variables.begin());
      TR_TRY(add_variable(variable));
      scales_[number] = datasets_[variable].id();
    } else {
      const auto length = static_cast<hsize_t>(dimension.length);
      const Handle space(H5Screate_simple(1, &length, nullptr), H5Sclose);
      const Handle list = creation_list();
      Handle& made = plain_scales_.emplace_back(H5Dcreate2(file_.id(), name.c_str(), H5T_IEEE_F32BE,
                                                           space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT),
                                                H5Dclose);
      if (!made.is_ok()) return failed(cat("add the dimension '", name, "'"));
      scales_[number] = made.id();
      char text[96];  // netCDF-C looks for the first 53 letters (nc4internal.h, DIM_WITHOUT_VARIABLE)
      std::snprintf(text, sizeof text, "This is a netCDF dimension but not a netCDF variable.%10lld",
                    static_cast<long long>(dimension.length));
      name = text;
    }
    TR_TRY(add_terminated(scales_[number], "CLASS", "DIMENSION_SCALE").in(dimension.name));
    TR_TRY(add_terminated(scales_[number], "NAME", name).in(dimension.name));
    return add_number(scales_[number], "_Netcdf4Dimid", static_cast<int>(number - first_dimension()));
  }

  [[nodiscard]] const Description::Field* field_of(std::size_t variable) const {
    const auto found = std::ranges::find(description_.fields, variable, &Description::Field::variable);
    return found == description_.fields.end() || found->record == nullptr ? nullptr : &*found;
  }

  [[nodiscard]] Handle space_of(const Variable& variable) const {
    std::vector<hsize_t> lengths, most;
    for (const int dimension : variable.dimensions) {
      const Index length = contents_.dimensions[static_cast<std::size_t>(dimension)].length;
      lengths.push_back(static_cast<hsize_t>(dimension == 0 ? description_.steps : length));
      most.push_back(dimension == 0 ? H5S_UNLIMITED : lengths.back());
    }
    if (lengths.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
    return {H5Screate_simple(static_cast<int>(lengths.size()), lengths.data(), most.data()), H5Sclose};
  }

  /// Sets the chunks of a variable with records. If it is a field, also sets the filters and the fill value
  /// with which its chunks in the file were made.
  Status set_chunks(hid_t list, const Variable& variable, const Description::Field* field) const {
    std::vector<hsize_t> chunk;
    if (field != nullptr) {
      chunk.assign(field->has_levels ? 2 : 1, 1);
      chunk.insert(chunk.end(), field->record->chunk.begin(), field->record->chunk.end());
    } else {
      chunk.push_back(512);  // times
      for (std::size_t i = 1; i < variable.dimensions.size(); ++i)
        chunk.push_back(static_cast<hsize_t>(
            contents_.dimensions[static_cast<std::size_t>(variable.dimensions[i])].length));
    }
    if (H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data()) < 0) return failed("set chunks");
    if (field == nullptr) return {};
    const RecordShape& record = *field->record;
    const bool filtered = record.compression.method == compression::Method::none ||
                          ((record.element_size == 1 || H5Pset_shuffle(list) >= 0) &&
                           H5Pset_deflate(list, static_cast<unsigned>(record.compression.level)) >= 0);
    // A reader gets the fill value for chunks that were not put.
    if (!filtered || H5Pset_fill_value(list, big_endian(variable.type), field->fill.data()) < 0)
      return failed("set filters and fill value");
    return {};
  }

  Status add_variable(std::size_t number) {
    const Variable& variable = contents_.variables[number];
    const Handle list = creation_list();
    const Handle space = space_of(variable);
    if (Contents::is_record(variable))
      TR_TRY(set_chunks(list.id(), variable, field_of(number)).in(cat("variable '", variable.name, "'")));
    Handle& made = datasets_[number];
    made = Handle(H5Dcreate2(file_.id(), variable.name.c_str(), type_in_file(variable.type), space.id(),
                             H5P_DEFAULT, list.id(), H5P_DEFAULT),
                  H5Dclose);
    if (!made.is_ok()) return failed(cat("add the variable '", variable.name, "'"));
    for (const Attribute& each : variable.attributes) TR_TRY(add_attribute(made.id(), each));
    if (Contents::is_record(variable) || !description_.has_data) return {};
    const ByteVector data = variable.data();
    if (H5Dwrite(made.id(), big_endian(variable.type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()) < 0)
      return failed(cat("write the variable '", variable.name, "'"));
    return {};
  }

  /// Names the dimensions of a variable. A scale has no such list.
  Status name_dimensions(std::size_t number) {
    const hid_t dataset = datasets_[number].id();
    const std::vector<int>& dimensions = contents_.variables[number].dimensions;
    if (dimensions.empty() || std::ranges::find(scales_, dataset) != scales_.end()) return {};
    const Result<hobj_ref_t> own = reference_to(dataset);
    TR_TRY(own.status());
    std::vector<hobj_ref_t> scales;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      const auto dimension = static_cast<std::size_t>(dimensions[i]);
      const Result<hobj_ref_t> scale = reference_to(scales_[dimension]);
      TR_TRY(scale.status());
      scales.push_back(*scale);
      uses_[dimension].push_back({*own, static_cast<std::int32_t>(i), 0});
    }
    return add_dimension_list(dataset, scales).in(contents_.variables[number].name);
  }

  Status write_times(const Description::Times& times) {
    if (times.values.empty() || H5Dwrite(datasets_[times.variable].id(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                                         H5P_DEFAULT, times.values.data()) >= 0)
      return {};
    return failed("write the times");
  }

  Status place_chunks(const Description::Field& field) {
    const std::vector<Index> numbers = field.record->chunks();
    const std::size_t grid = numbers.size();
    std::vector<hsize_t> offset((field.has_levels ? 2 : 1) + grid, 0);
    for (const PlacedChunk& each : field.chunks) {
      offset[0] = static_cast<hsize_t>(each.step);
      if (field.has_levels) offset[1] = static_cast<hsize_t>(each.level);
      Index rest = each.number;
      for (std::size_t d = grid; d-- > 0; rest /= numbers[d])
        offset[offset.size() - grid + d] = static_cast<hsize_t>(rest % numbers[d] * field.record->chunk[d]);
      image_.expect_chunk(each.offset, each.length);
      // The library passes this pointer on to the image, which drops the write unread.
      const std::byte nothing{};
      if (H5Dwrite_chunk(datasets_[field.variable].id(), H5P_DEFAULT, 0, offset.data(),
                         static_cast<std::size_t>(each.length), &nothing) < 0 ||
          !image_.took_chunk())
        return failed(cat("place a chunk of '", contents_.variables[field.variable].name, "'"));
    }
    return {};
  }

  Result<codec::Ending> finish() {
    bool closed = true;
    for (std::vector<Handle>* const handles : {&datasets_, &plain_scales_}) {
      for (Handle& each : *handles) closed = (!each.is_ok() || each.close() >= 0) && closed;
    }
    closed = file_.close() >= 0 && closed;
    // If the image refused a call, the library's errors do not give the reason.
    if (image_.has_failed())
      return Status(Code::format,
                    cat("the HDF5 library (", H5_VERS_INFO,
                        ") placed a part of a file in memory where none may lie, or memory ran out"));
    if (!closed) return failed("complete a file in memory");
    codec::Ending ending;
    ending.head.bytes = image_.superblock();
    ending.head.bytes.resize(static_cast<std::size_t>(superblock_room));
    ending.tail = image_.take_tail();
    return ending;
  }

  const Description& description_;
  const Contents& contents_;
  Image image_;
  Handle file_;
  // datasets_: by variable. plain_scales_: the scales of dimensions without a variable.
  std::vector<Handle> datasets_, plain_scales_;
  std::vector<hid_t> scales_;           // by dimension
  std::vector<std::vector<Use>> uses_;  // by dimension: the variables that have it
};

}  // namespace

/// HDF5's own headers would end the program if the library had another version.
Status check_library() {
  unsigned major = 0, minor = 0, release = 0;
  if (H5get_libversion(&major, &minor, &release) >= 0 && major == H5_VERS_MAJOR && minor == H5_VERS_MINOR &&
      release == H5_VERS_RELEASE)
    return {};
  return {Code::unsupported, cat("the HDF5 library of this process is ", major, ".", minor, ".", release,
                                 ", and Tailrace was built with ", H5_VERS_INFO,
                                 ": build it with the one that the program uses")};
}

Result<codec::Ending> make_metadata(const Description& description) {
  const std::lock_guard guard(library_mutex());
  return guarded([&]() -> Result<codec::Ending> {
    const Quiet quiet;
    return Maker(description).make();
  });
}

}  // namespace tailrace::netcdf4
