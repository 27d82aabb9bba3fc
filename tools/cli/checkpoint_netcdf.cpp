// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint.hpp"
#include "engine/arrays/type_text.hpp"
#include "ground/base/text.hpp"

#if TAILRACE_HAVE_NETCDF
#include <netcdf.h>

#include <algorithm>
#endif

namespace tailrace::cli {

#if TAILRACE_HAVE_NETCDF

namespace {

using checkpoint::Copy;
using checkpoint::ItemInfo;

/// A NetCDF file that is being written. The destructor closes it.
class NetcdfFile {
 public:
  explicit NetcdfFile(std::string path) : path_(std::move(path)) {}
  NetcdfFile(const NetcdfFile&) = delete;
  NetcdfFile& operator=(const NetcdfFile&) = delete;
  ~NetcdfFile() {
    if (id_ >= 0) nc_close(id_);
  }
  Status create() { return of(nc_create(path_.c_str(), NC_NETCDF4 | NC_CLOBBER, &id_), "create"); }
  Status define(const Copy& copy, const ItemInfo& item);
  Status put(const std::vector<std::size_t>& start, const std::vector<std::size_t>& count,
             const std::byte* values) {
    return of(nc_put_vara(id_, variable_, start.data(), count.data(), values), "write");
  }
  Status close() {
    const int id = id_;
    id_ = -1;
    return of(nc_close(id), "close");
  }

 private:
  Status of(int code, std::string_view operation) const {
    if (code == NC_NOERR) return {};
    return {Code::io, cat(operation, " ", path_, ": ", nc_strerror(code))};
  }
  Status put_text(int variable, const char* name, const std::string& text) {
    return of(nc_put_att_text(id_, variable, name, text.size(), text.c_str()), "describe");
  }

  const std::string path_;
  int id_ = -1;
  int variable_ = -1;
};

nc_type netcdf_type(ElementType type) {
  if (is_text(type)) return NC_CHAR;
  switch (type) {
    case ElementType::i8:
      return NC_BYTE;
    case ElementType::i16:
      return NC_SHORT;
    case ElementType::i32:
      return NC_INT;
    case ElementType::i64:
      return NC_INT64;
    case ElementType::f32:
    case ElementType::c64:
      return NC_FLOAT;
    case ElementType::f64:
    case ElementType::c128:
      return NC_DOUBLE;
    case ElementType::byte:
      return NC_UBYTE;
    case ElementType::u16:
      return NC_USHORT;
    case ElementType::u32:
      return NC_UINT;
    case ElementType::u64:
      return NC_UINT64;
  }
  return NC_NAT;
}

/// Returns an item's name with all characters replaced that NetCDF does not allow in names.
std::string netcdf_name(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += plain || (!out.empty() && (c == '-' || c == '+' || c == '.' || c == '@')) ? c : '_';
  }
  constexpr std::size_t longest = 200;  // leaves room for the text in front of it in a dimension's name
  return out.empty() ? "item" : out.substr(0, longest);
}

Status NetcdfFile::define(const Copy& copy, const ItemInfo& item) {
  const std::string name = netcdf_name(item.name);
  std::vector<int> dims;
  const auto add = [&](const std::string& dim, std::size_t extent) {
    dims.push_back(-1);
    // An extent of 0 means an unlimited dimension to NetCDF. So the dimension becomes one, without records.
    return of(nc_def_dim(id_, dim.c_str(), extent, &dims.back()), "define");
  };
  for (std::size_t d = 0; d < item.shape.size(); ++d)
    TR_TRY(add(cat("d", d, "_", name), static_cast<std::size_t>(item.shape[d])));
  if (is_complex(item.type)) TR_TRY(add("complex", 2));
  if (is_text(item.type))
    TR_TRY(add(cat("string", size_of(item.type)), static_cast<std::size_t>(size_of(item.type))));
  TR_TRY(of(nc_def_var(id_, name.c_str(), netcdf_type(item.type), static_cast<int>(dims.size()), dims.data(),
                       &variable_),
            "define"));
  if (!dims.empty()) TR_TRY(of(nc_def_var_fill(id_, variable_, NC_NOFILL, nullptr), "define"));
  TR_TRY(put_text(variable_, "item", item.name));
  TR_TRY(put_text(variable_, "element_type", type_text(item.type)));
  TR_TRY(put_text(NC_GLOBAL, "checkpoint", copy.path));
  TR_TRY(put_text(NC_GLOBAL, "generation", cat(copy.generation())));
  TR_TRY(put_text(NC_GLOBAL, "run", copy.header.id.run.text()));
  return put_text(NC_GLOBAL, "saved_at", saved_text(copy.header.saved_at));
}

/// How an array is cut into boxes of consecutive elements, each of `most` elements at most. In one box, a
/// dimension before `cut` has one index, the dimension `cut` has up to `along` indices, and the dimensions
/// behind `cut` are whole.
struct Slabs {
  bool whole = false;  // one box is the whole array
  std::size_t cut = 0;
  Index inner = 1;  // elements of the dimensions behind `cut` together
  Index along = 1;

  Slabs(const std::vector<Index>& shape, Index most) {
    for (cut = shape.size(); cut > 0 && inner * shape[cut - 1] <= most; --cut) inner *= shape[cut - 1];
    whole = cut == 0;
    if (whole) return;
    --cut;
    along = std::max<Index>(1, most / inner);
  }
};

Status put_elements(NetcdfFile& file, checkpoint::CopyReader& reader, const Copy& copy, int number) {
  const ItemInfo& item = copy.directory.items[static_cast<std::size_t>(number)];
  const Slabs slabs(item.shape, elements_at_once(item.type));
  ByteVector bytes;
  for (Index begin = 0, count = 0; begin < item.elements(); begin += count) {
    std::vector<std::size_t> start(item.shape.size());
    std::vector<std::size_t> extent(item.shape.begin(), item.shape.end());
    count = item.elements();
    if (!slabs.whole) {
      Index rest = begin;
      for (std::size_t d = item.shape.size(); d-- > 0; rest /= item.shape[d]) {
        start[d] = static_cast<std::size_t>(rest % item.shape[d]);
        if (d < slabs.cut) extent[d] = 1;
      }
      const Index left = item.shape[slabs.cut] - static_cast<Index>(start[slabs.cut]);
      const Index along = std::min(slabs.along, left);
      extent[slabs.cut] = static_cast<std::size_t>(along);
      count = along * slabs.inner;
    }
    if (is_complex(item.type) || is_text(item.type)) {
      start.push_back(0);
      extent.push_back(static_cast<std::size_t>(size_of(item.type) / scalar_size_of(item.type)));
    }
    // Elements in no part are zeros.
    bytes.assign(static_cast<std::size_t>(count * size_of(item.type)), std::byte{});
    TR_TRY(read_elements(reader, copy, number, begin, count, bytes.data()));
    TR_TRY(file.put(start, extent, bytes.data()));
  }
  return {};
}

}  // namespace

Status write_netcdf(checkpoint::CopyReader& reader, const Copy& copy, int item, const std::string& path) {
  NetcdfFile file(path);
  TR_TRY(file.create());
  TR_TRY(file.define(copy, copy.directory.items[static_cast<std::size_t>(item)]));
  TR_TRY(put_elements(file, reader, copy, item));
  return file.close();
}

#else

Status write_netcdf(checkpoint::CopyReader&, const checkpoint::Copy&, int, const std::string&) {
  return {Code::unsupported,
          "this tailrace was built without NetCDF; --format raw writes the elements alone"};
}

#endif

}  // namespace tailrace::cli
