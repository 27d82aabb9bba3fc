// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Chunks of HDF5 files whose filters we undo ourselves. The HDF5 library writes them, and tells the values.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <limits>

#include "../variables/reading.hpp"
#include "formats/netcdf4/reader.hpp"
#include "ground/base/byte_order.hpp"
#include "hdf5_file.hpp"

#ifdef TAILRACE_HAVE_LZF
#include <lzf.h>
#endif

namespace tailrace::variables {
namespace {

using namespace test;
using hdf5_file::plain_hdf5;
using hdf5_file::taken;
using Values = std::vector<double>;
using Set = std::function<void(hid_t)>;

constexpr hsize_t rows = 6, columns = 40;

/// Writes a dataset and returns the file; `read` gets the values as the library reads them.
ByteVector written(hid_t type, hsize_t chunk_rows, hsize_t chunk_columns, const Set& set,
                   const Values& values, Values& read) {
  const std::string path = cat(testing::TempDir(), "filters.", ::getpid(), ".h5");
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t lengths[] = {rows, columns}, chunk[] = {chunk_rows, chunk_columns};
  const hid_t space = H5Screate_simple(2, lengths, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  EXPECT_GE(H5Pset_chunk(list, 2, chunk), 0);
  set(list);
  hid_t data = H5Dcreate2(file, "data", type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  EXPECT_GE(data, 0) << "the library does not write such a file";
  EXPECT_GE(H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(data);
  H5Fclose(file);
  file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  data = H5Dopen2(file, "data", H5P_DEFAULT);
  read.assign(values.size(), 0);
  EXPECT_GE(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), 0);
  H5Dclose(data);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  return taken(path);
}

Values wave(double middle, double step) {
  Values values;
  for (hsize_t i = 0; i < rows * columns; ++i)
    values.push_back(middle + step * static_cast<double>(i * 7 % 60) - step * 20);
  return values;
}

void expect_read(hid_t type, hsize_t chunk_rows, hsize_t chunk_columns, const Set& set,
                 const Values& values) {
  Values expected;
  const auto source = opened(written(type, chunk_rows, chunk_columns, set, values, expected));
  ASSERT_NE(source, nullptr);
  const PartRead read = all_of<double>(*source, source->inventory().records.at(0));
  EXPECT_TRUE(read.status.is_ok()) << read.status.text();
  EXPECT_EQ(read.values, expected);
}

std::vector<hid_t> integer_types() {
  return {H5T_STD_I8LE,  H5T_STD_U8LE,  H5T_STD_I16LE, H5T_STD_I16BE, H5T_STD_U16BE, H5T_STD_I32LE,
          H5T_STD_I32BE, H5T_STD_U32LE, H5T_STD_I64LE, H5T_STD_I64BE, H5T_STD_U64BE};
}
std::vector<hid_t> real_types() { return {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE}; }

TEST(Hdf5Filters, IntegersOfScaleoffsetAreRead) {
  for (const hid_t type : integer_types()) {
    const double middle = H5Tget_sign(type) == H5T_SGN_NONE ? 60 : -30;
    for (const int bits : {0, 7}) {
      const Set plain = [&](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_INT, bits); };
      expect_read(type, 4, 17, plain, wave(middle, 1));
      expect_read(type, 4, 17, plain, Values(rows * columns, middle));
      expect_read(
          type, 4, 17,
          [&](hid_t list) {
            const int fill = 61;
            H5Pset_fill_value(list, H5T_NATIVE_INT, &fill);
            plain(list);
            H5Pset_shuffle(list);
            H5Pset_deflate(list, 1);
            H5Pset_fletcher32(list);
          },
          wave(middle, 1));
    }
  }
}

TEST(Hdf5Filters, IntegersOfScaleoffsetThatNeedAllBitsAreRead) {
  Values values(rows * columns, 5);
  values[0] = -2147483000;
  values[1] = 2147483000;
  const Set set = [](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_INT, 0); };
  for (const hid_t type : {H5T_STD_I32LE, H5T_STD_I32BE}) expect_read(type, 6, 20, set, values);
  values[1] = -2147480000 + 1073741824.0;  // 31 bits
  for (const hid_t type : {H5T_STD_I32LE, H5T_STD_I64BE}) expect_read(type, 6, 20, set, values);
  values[0] = 0;
  values[1] = 4e15;  // 52 bits
  expect_read(H5T_STD_I64LE, 6, 20, set, values);
  // Behind a filter with a head the next one has more than the elements.
  values[0] = -2147483000;
  values[1] = 2147483000;
  expect_read(
      H5T_STD_I32LE, 6, 20,
      [](hid_t list) {
        H5Pset_scaleoffset(list, H5Z_SO_INT, 0);
        H5Pset_deflate(list, 1);
      },
      values);
}

TEST(Hdf5Filters, RealsOfScaleoffsetAreReadAsTheLibraryReadsThem) {
  for (const hid_t type : real_types()) {
    for (const int decimals : {0, 2, 5}) {
      const Set plain = [&](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_FLOAT_DSCALE, decimals); };
      expect_read(type, 4, 17, plain, wave(273.15, 0.37));
      expect_read(
          type, 4, 17,
          [&](hid_t list) {
            const double fill = -999;
            H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill);
            plain(list);
            H5Pset_deflate(list, 1);
          },
          [] {
            Values values = wave(10, 0.01);
            values[3] = values[77] = -999;
            return values;
          }());
    }
  }
}

#ifdef TAILRACE_HAVE_AEC
TEST(Hdf5Filters, SzipIsRead) {
  unsigned ways = 0;
  H5Zget_filter_info(H5Z_FILTER_SZIP, &ways);
  if ((ways & H5Z_FILTER_CONFIG_ENCODE_ENABLED) == 0) GTEST_SKIP() << "this HDF5 library writes no szip";
  std::vector<hid_t> types = integer_types();
  for (const hid_t each : real_types()) types.push_back(each);
  for (const hid_t type : types) {
    const bool is_real = H5Tget_class(type) == H5T_FLOAT;
    for (const unsigned option : {H5_SZIP_NN_OPTION_MASK, H5_SZIP_EC_OPTION_MASK}) {
      for (const auto& [block, chunk_rows, chunk_columns] :
           {std::tuple(8U, 6, 40), std::tuple(16U, 5, 30), std::tuple(32U, 4, 9), std::tuple(4U, 1, 5)}) {
        const Set set = [&, block = block](hid_t list) { H5Pset_szip(list, option, block); };
        expect_read(type, static_cast<hsize_t>(chunk_rows), static_cast<hsize_t>(chunk_columns), set,
                    wave(40, is_real ? 0.3 : 1));
      }
    }
    expect_read(
        type, 6, 40,
        [](hid_t list) {
          H5Pset_shuffle(list);
          H5Pset_szip(list, H5_SZIP_NN_OPTION_MASK, 8);
          H5Pset_fletcher32(list);
        },
        Values(rows * columns, 7));
  }
}
#endif

#ifdef TAILRACE_HAVE_LZF
/// The filter of h5py, for chunks that become smaller.
std::size_t lzf_filter(unsigned flags, std::size_t, const unsigned[], std::size_t bytes, std::size_t* size,
                       void** buffer) {
  const bool is_read = (flags & H5Z_FLAG_REVERSE) != 0;
  const std::size_t room = is_read ? 1 << 16 : bytes;
  void* const out = std::malloc(room);
  const unsigned got = is_read ? lzf_decompress(*buffer, static_cast<unsigned>(bytes), out, room)
                               : lzf_compress(*buffer, static_cast<unsigned>(bytes), out, room);
  if (got == 0) {
    std::free(out);
    return 0;
  }
  std::free(*buffer);
  *buffer = out;
  *size = room;
  return got;
}

TEST(Hdf5Filters, LzfIsRead) {
  constexpr H5Z_filter_t number = 32000;
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, number, 1, 1, "lzf", nullptr, nullptr, lzf_filter};
  ASSERT_GE(H5Zregister(&filter), 0);
  const auto lzf = [](hid_t list) { H5Pset_filter(list, number, H5Z_FLAG_OPTIONAL, 0, nullptr); };
  for (const hid_t type : {H5T_STD_I16BE, H5T_STD_I32LE, H5T_IEEE_F64LE}) {
    expect_read(type, 4, 17, lzf, wave(100, 1));
    expect_read(
        type, 4, 17,
        [&](hid_t list) {
          H5Pset_fletcher32(list);
          H5Pset_shuffle(list);
          lzf(list);
        },
        wave(-5, 2));
  }
  EXPECT_GE(H5Zunregister(number), 0);
}
#endif

TEST(Hdf5Filters, NbitOfTypesThatUseAllTheirBitsIsPassedOver) {
  for (const hid_t type : {H5T_STD_I16BE, H5T_IEEE_F32LE})
    expect_read(
        type, 4, 17, [](hid_t list) { H5Pset_nbit(list); }, wave(100, 1));
}

TEST(Hdf5Filters, ThatAreNotReadAreRefusedByTheirName) {
  constexpr H5Z_filter_t number = 307;  // bzip2
  const auto same = [](unsigned, std::size_t, const unsigned[], std::size_t bytes, std::size_t*, void**) {
    return bytes;
  };
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, number, 1, 1, "bzip2", nullptr, nullptr, same};
  ASSERT_GE(H5Zregister(&filter), 0);
  const hsize_t chunk[] = {2, 3};
  const ByteVector bytes = plain_hdf5([&](hid_t list) {
    H5Pset_chunk(list, 2, chunk);
    H5Pset_filter(list, number, H5Z_FLAG_OPTIONAL, 0, nullptr);
  });
  EXPECT_GE(H5Zunregister(number), 0);
  const auto source = opened(bytes);
  ASSERT_NE(source, nullptr);
  const Status status = all_of(*source, source->inventory().records.front()).status;
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("a.nc: variable 'data': its chunks went through the filter 'bzip2' (307)"),
            std::string::npos)
      << status.text();
}

/// A chunk of 64 elements of 4 bytes that went through one filter.
netcdf4::Dataset chunks_with(int id, std::vector<unsigned> values) {
  netcdf4::Dataset dataset;
  dataset.kind = netcdf4::Dataset::Kind::chunked;
  dataset.chunk = {64};
  dataset.fill = ByteVector(4);
  dataset.filters = {{id, "a filter", std::move(values)}};
  return dataset;
}

Status undone(const netcdf4::Dataset& dataset, ByteVector bytes) {
  ByteVector chunk;
  return netcdf4::undo_filters(dataset, 0, bytes, chunk);
}

ByteVector bytes_of(std::initializer_list<int> list, std::size_t size) {
  ByteVector bytes(size, std::byte{0x5a});
  std::transform(list.begin(), list.end(), bytes.begin(),
                 [](int each) { return static_cast<std::byte>(each); });
  return bytes;
}

TEST(Hdf5Filters, ScaleoffsetThatContradictsItselfIsCorrupt) {
  const std::vector<unsigned> good{2, 0, 64, 0, 4, 1, 0, 0};
  const auto with = [&](std::size_t at, unsigned value) {
    std::vector<unsigned> values = good;
    values[at] = value;
    return chunks_with(6, values);
  };
  const ByteVector five_bits = bytes_of({5, 0, 0, 0, 8}, 21 + 40);
  EXPECT_TRUE(undone(chunks_with(6, good), five_bits).is_ok());
  EXPECT_EQ(undone(chunks_with(6, good), ByteVector(five_bits.begin(), five_bits.end() - 1)).code(),
            Code::corrupt);
  EXPECT_EQ(undone(chunks_with(6, good), ByteVector(20)).code(), Code::corrupt);
  EXPECT_EQ(undone(chunks_with(6, good), {}).code(), Code::corrupt);
  for (const unsigned bits : {33U, 255U})
    EXPECT_EQ(undone(chunks_with(6, good), bytes_of({static_cast<int>(bits)}, 1 << 16)).code(),
              Code::corrupt);
  EXPECT_EQ(undone(chunks_with(6, good), bytes_of({5, 0, 0, 128, 8}, 1 << 16)).code(), Code::corrupt);
  EXPECT_TRUE(undone(chunks_with(6, good), bytes_of({32, 0, 0, 0, 255}, 21 + 256)).is_ok());
  EXPECT_EQ(undone(chunks_with(6, good), bytes_of({32, 0, 0, 0, 8}, 21 + 255)).code(), Code::corrupt);
  EXPECT_EQ(undone(with(2, 63), five_bits).code(), Code::corrupt);
  EXPECT_EQ(undone(with(2, 0xffffffff), five_bits).code(), Code::corrupt);
  EXPECT_EQ(undone(with(4, 8), five_bits).code(), Code::corrupt);
  EXPECT_EQ(undone(with(3, 7), five_bits).code(), Code::corrupt);
  EXPECT_EQ(undone(chunks_with(6, {2, 0, 64}), five_bits).code(), Code::corrupt);
  EXPECT_EQ(undone(chunks_with(6, {}), five_bits).code(), Code::corrupt);
  EXPECT_EQ(netcdf4::check_filters(chunks_with(6, {1, 3, 64, 1, 4, 1, 0, 0})).code(), Code::unsupported);
}

#ifdef TAILRACE_HAVE_AEC
TEST(Hdf5Filters, SzipThatContradictsItselfIsCorrupt) {
  const std::vector<unsigned> good{141, 16, 32, 64};
  const auto with = [&](std::size_t at, unsigned value) {
    std::vector<unsigned> values = good;
    values[at] = value;
    return chunks_with(4, values);
  };
  const ByteVector bytes = bytes_of({0, 1, 0, 0}, 400);
  for (const auto& [at, value] : std::vector<std::pair<std::size_t, unsigned>>{{1, 0},
                                                                               {1, 1},
                                                                               {1, 15},
                                                                               {1, 64},
                                                                               {2, 0},
                                                                               {2, 31},
                                                                               {2, 64},
                                                                               {3, 0},
                                                                               {3, 8},
                                                                               {3, 4097},
                                                                               {3, 0xffffffff}})
    EXPECT_EQ(undone(with(at, value), bytes).code(), Code::corrupt) << at << " " << value;
  EXPECT_EQ(undone(chunks_with(4, {141, 16}), bytes).code(), Code::corrupt);
  for (const auto& [low, high] : {std::pair(0, 2), std::pair(1, 1), std::pair(0, 255), std::pair(252, 0)})
    EXPECT_EQ(undone(chunks_with(4, good), bytes_of({low, high, 0, 0}, 400)).code(), Code::corrupt);
  EXPECT_EQ(undone(chunks_with(4, good), bytes_of({0, 1, 0, 0}, 4)).code(), Code::corrupt);
  EXPECT_EQ(undone(chunks_with(4, good), bytes_of({0, 1}, 2)).code(), Code::corrupt);
}
#endif

#ifdef TAILRACE_HAVE_LZF
// The file has a user block, too.
TEST(Hdf5Filters, OfH5pyAreRead) {
  const auto source = opened(storage::posix_target(), TAILRACE_H5PY_FILE);
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->inventory().records.size(), 4U);
  const std::vector<std::pair<std::string, double>> fields{{"lzf", 0.25}, {"scaled", 1}, {"decimals", 0.25}};
  for (const auto& [name, step] : fields) {
    const PartRead read = all_of<double>(*source, records_of(*source, name).at(0));
    EXPECT_TRUE(read.status.is_ok()) << read.status.text();
    for (std::size_t i = 0; i < 48; ++i)
      EXPECT_DOUBLE_EQ(read.values.at(i), step * static_cast<double>(i)) << name;
  }
  const PartRead read = all_of<double>(*source, records_of(*source, "long").at(0));
  for (std::size_t i = 0; i < 48; ++i)
    EXPECT_EQ(read.values.at(i), std::round(std::sin(0.25 * static_cast<double>(i)) * 100)) << i;
}

TEST(Hdf5Filters, LzfThatContradictsItselfIsCorrupt) {
  const netcdf4::Dataset dataset = chunks_with(32000, {});
  EXPECT_TRUE(undone(dataset, bytes_of({0, 7, 0xe0, 246, 0}, 5)).is_ok()) << "256 times 7";
  EXPECT_EQ(undone(dataset, bytes_of({0, 7, 0xe0, 247, 0}, 5)).code(), Code::corrupt) << "257 times";
  EXPECT_EQ(undone(dataset, bytes_of({0, 7, 0xe0, 245, 0}, 5)).code(), Code::corrupt) << "255 times";
  EXPECT_EQ(undone(dataset, bytes_of({0, 7, 0xe0, 246, 1}, 5)).code(), Code::corrupt) << "before the first";
  EXPECT_EQ(undone(dataset, bytes_of({31, 7}, 2)).code(), Code::corrupt);
  EXPECT_EQ(undone(dataset, {}).code(), Code::corrupt);
}
#endif

// A damaged file says that an element has 4 GiB. Each look for its bytes took seconds.
TEST(Hdf5Filters, ShuffleOfElementsThatAreLargerThanTheChunkMovesNothing) {
  netcdf4::Dataset dataset = chunks_with(2, {4'000'000'000});
  dataset.chunk = {1024};
  for (int i = 0; i < 300; ++i) dataset.filters.push_back(dataset.filters.front());
  ByteVector bytes(4096, std::byte{7}), chunk;
  EXPECT_TRUE(netcdf4::undo_filters(dataset, 0, bytes, chunk).is_ok());
  EXPECT_EQ(chunk, ByteVector(4096, std::byte{7}));
}

// Each byte that comes from a file may be any other one.
TEST(Hdf5Filters, WhoseFilesAreChangedAreReadOrRefused) {
  const std::vector<Set> ways{
      [](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_INT, 0); },
      [](hid_t list) { H5Pset_szip(list, H5_SZIP_NN_OPTION_MASK, 8); },
  };
  int read = 0, refused = 0;
  for (const Set& set : ways) {
    Values values;
    const ByteVector good = written(H5T_STD_I32LE, 6, 40, set, wave(20, 1), values);
    for (std::size_t at = 0; at < good.size(); at += 29) {
      ByteVector bytes = good;
      bytes[at] ^= std::byte{0x24};
      const Result<std::shared_ptr<const Source>> source =
          sources::open(target_with("a.nc", bytes), "a.nc", "");
      if (!source.is_ok()) continue;
      for (const Record& record : (*source)->inventory().records)
        ++(all_of(**source, record).status.is_ok() ? read : refused);
    }
  }
  EXPECT_GT(read, 10);
  EXPECT_GT(refused, 2);
}

}  // namespace
}  // namespace tailrace::variables
