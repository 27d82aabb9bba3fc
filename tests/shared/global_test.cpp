// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Global arrays against a model. In a round the ranks either write, each to elements of its own, or all add
// to the same elements under locks. After the round all ranks see all of it. All ranks draw from the same
// numbers, so that each of them knows what the array holds.
#include <random>
#include <vector>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::files_test;

namespace {

struct Sample {
  unsigned seed = 0;
  int type = TR_F64;
  std::string options;
  tr_index most = 0;  // elements
  int rounds = 0;
};

void fails(int code, int wanted, const std::string& part) {
  CHECK_EQ(code, wanted);
  if (!CHECK(mentions(tr_error(), part))) std::fprintf(stderr, "  \"%s\"\n", tr_error());
}

void fails_everywhere(int code, int wanted, const std::string& part) {
  fails(code, wanted, part);
  CHECK(agreed(code, 0));
}

template <typename T>
void put(std::string& bytes, std::int64_t value) {
  const T number = static_cast<T>(value);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// An element with this value. Sums of values are values of sums.
void put_element(std::string& bytes, int type, std::int64_t value) {
  switch (type) {
    case TR_I16:
      return put<std::int16_t>(bytes, value);
    case TR_I32:
      return put<std::int32_t>(bytes, value);
    case TR_I64:
      return put<std::int64_t>(bytes, value);
    case TR_U16:
      return put<std::uint16_t>(bytes, value);
    case TR_U32:
      return put<std::uint32_t>(bytes, value);
    case TR_U64:
      return put<std::uint64_t>(bytes, value);
    case TR_F32:
      return put<float>(bytes, value);
    case TR_F64:
      return put<double>(bytes, value);
    case TR_C64:
      put<float>(bytes, value);
      return put<float>(bytes, -value);
    case TR_C128:
      put<double>(bytes, value);
      return put<double>(bytes, -value);
    default:
      return put<std::int8_t>(bytes, value);
  }
}

std::string elements(int type, const std::vector<std::int64_t>& values) {
  std::string bytes;
  for (const std::int64_t value : values) put_element(bytes, type, value);
  return bytes;
}

bool adds(int type) { return type != TR_I8 && type != TR_I16 && type != TR_BYTE && type != TR_U16; }

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}
  tr_index pick(tr_index least, tr_index most) {
    return std::uniform_int_distribution<tr_index>(least, most)(random_);
  }
  [[nodiscard]] tr_index size() const { return static_cast<tr_index>(values_.size()); }
  void resize(tr_index size) { values_.resize(static_cast<std::size_t>(size)); }
  std::int64_t& at(tr_index index) { return values_[static_cast<std::size_t>(index)]; }

 private:
  std::mt19937 random_;
  std::vector<std::int64_t> values_;
};

/// Expects the elements of these numbers to be those of the model.
void check_gather(Model& model, tr_global* global, int type, const std::vector<tr_index>& indices) {
  std::vector<std::int64_t> values;
  for (const tr_index index : indices) values.push_back(model.at(index));
  const std::string wanted = elements(type, values);
  std::string got(wanted.size(), '?');
  ok(tr_global_gather(global, std::ssize(indices), indices.data(), got.data()), "gather");
  CHECK(got == wanted);
}

void check_read(Model& model, tr_global* global, int type, tr_index begin, tr_index count) {
  std::vector<std::int64_t> values;
  for (tr_index i = begin; i < begin + count; ++i) values.push_back(model.at(i));
  const std::string wanted = elements(type, values);
  std::string got(wanted.size(), '?');
  ok(tr_global_read(global, begin, count, got.data()), "read");
  CHECK(got == wanted);
}

/// In a round each run of 50 elements belongs to one rank.
int writer_of(tr_index index, unsigned seed) { return static_cast<int>((index / 50 * 7 + seed) % size()); }

void write_somehow(Model& model, tr_global* global, const Sample& sample, int writer) {
  const bool mine = writer == rank();
  const bool is_range = model.pick(1, 3) == 1;
  std::vector<tr_index> indices;
  std::vector<std::int64_t> values;
  const tr_index first = model.pick(0, model.size() - 1);
  for (tr_index i = model.pick(1, 40); i > 0; --i) {
    const tr_index index = is_range ? first + std::ssize(indices) : model.pick(0, model.size() - 1);
    if (is_range && (index >= model.size() || writer_of(index, sample.seed) != writer)) break;
    if (writer_of(index, sample.seed) != writer) continue;
    indices.push_back(index);
    values.push_back(model.pick(0, 99));
  }
  const std::string bytes = elements(sample.type, values);
  const auto count = std::ssize(indices);
  const bool is_sum = !is_range && adds(sample.type) && model.pick(1, 2) == 1;
  for (std::size_t i = 0; i < values.size(); ++i)
    model.at(indices[i]) = values[i] + (is_sum ? model.at(indices[i]) : 0);
  if (!mine) return;
  if (is_range && count > 0)
    ok(tr_global_write(global, first, count, bytes.data()), "write");
  else if (is_sum)
    ok(tr_global_accumulate(global, count, indices.data(), bytes.data(), TR_UNLOCKED), "accumulate");
  else
    ok(tr_global_scatter(global, count, indices.data(), bytes.data()), "scatter");
  check_gather(model, global, sample.type, indices);
}

/// Everybody adds to the same few elements.
void add_round(Model& model, tr_global* global, const Sample& sample) {
  for (int adder = 0; adder < size(); ++adder) {
    for (int i = 0; i < 10; ++i) {
      std::vector<tr_index> indices;
      std::vector<std::int64_t> values;
      const tr_index last = std::min<tr_index>(model.size() - 1, 20);
      for (tr_index n = model.pick(0, 60); n > 0; --n) {
        const bool is_hot = model.pick(1, 2) == 1;
        indices.push_back(model.pick(0, is_hot ? last : model.size() - 1));
        values.push_back(model.pick(0, 9));
        model.at(indices.back()) += values.back();
      }
      const std::string bytes = elements(sample.type, values);
      if (adder == rank())
        ok(tr_global_accumulate(global, std::ssize(indices), indices.data(), bytes.data(), TR_LOCKED), "add");
    }
  }
}

void check_all(Model& model, tr_global* global, const Sample& sample) {
  tr_index count = -1;
  ok(tr_global_count(global, &count), "count");
  CHECK_EQ(count, model.size());
  if (count == 0) return;
  std::vector<tr_index> indices;
  for (int i = 0; i < 200; ++i) indices.push_back(model.pick(0, count - 1));
  check_gather(model, global, sample.type, indices);
  const tr_index begin = model.pick(0, count);
  check_read(model, global, sample.type, begin, model.pick(0, count - begin));
  check_read(model, global, sample.type, 0, count);
  // Every page lies where its owner sees it.
  tr_index own = 0;
  for (tr_index part = 0;; ++part) {
    void* values = nullptr;
    tr_index first = -1;
    tr_index some = -1;
    ok(tr_global_local(global, part, &values, &first, &some), "local");
    CHECK_EQ(values == nullptr, some == 0);
    if (values == nullptr || some <= 0) break;
    own += some;
    std::vector<std::int64_t> wanted;
    for (tr_index i = first; i < first + some; ++i) wanted.push_back(model.at(i));
    const std::string bytes = elements(sample.type, wanted);
    CHECK(std::memcmp(values, bytes.data(), bytes.size()) == 0);
  }
  long long all = own;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_LONG_LONG, MPI_SUM, state().comm, &request);
  // Others may still need elements of this rank.
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) tr_progress();
  CHECK_EQ(all, static_cast<long long>(count));
}

tr_global* create(int type, tr_index count, const std::string& options = "") {
  tr_global* global = nullptr;
  ok(tr_global_create(type, count, options.c_str(), &global), "create");
  return global;
}

void run(const Sample& sample) {
  Model model(sample.seed);
  model.resize(model.pick(0, sample.most));
  tr_global* global = create(sample.type, model.size(), sample.options);
  if (global == nullptr) return;
  check_all(model, global, sample);
  ok(tr_global_sync(global), "sync");
  for (int round = 0; round < sample.rounds; ++round) {
    if (model.size() > 0) {
      if (adds(sample.type) && model.pick(1, 2) == 1) {
        add_round(model, global, sample);
      } else {
        for (tr_index i = model.pick(0, 60); i > 0; --i)
          write_somehow(model, global, sample, static_cast<int>(model.pick(0, size() - 1)));
      }
    }
    if (model.pick(1, 2) == 1) {
      const tr_index count = model.pick(0, model.pick(0, 9) == 0 ? 0 : sample.most);
      ok(tr_global_resize(global, count), "resize");
      model.resize(count);
    } else {
      ok(tr_global_sync(global), "sync");
    }
    check_all(model, global, sample);
    ok(tr_global_sync(global), "sync");  // nobody writes before all have read
  }
  ok(tr_global_free(&global), "free");
  CHECK(global == nullptr);
}

}  // namespace

MPI_TEST(global, holds_what_a_model_holds) {
  const Session session;
  const std::vector<int> types{TR_F64, TR_I8,  TR_I32,  TR_C128, TR_I64, TR_F32,
                               TR_I16, TR_C64, TR_BYTE, TR_U32,  TR_U64, TR_U16};
  for (unsigned seed = 1; seed <= 18; ++seed) {
    const std::int64_t before = state().failures;
    const int type = types[seed % types.size()];
    run({seed, type, seed % 5 == 0 ? "page=64KiB" : "page=4KiB", 30'000, 6});
    if (any_rank(state().failures != before)) {
      std::fprintf(stderr, "rank %d: seed %u, type %d\n", rank(), seed, type);
      break;
    }
  }
}

MPI_TEST(global, sums_under_locks_are_exact) {
  const Session session;
  constexpr int times = 300;
  constexpr tr_index count = 3000;
  tr_global* sums = create(TR_F64, count, "page=4KiB");
  tr_global* others = create(TR_I32, count);
  std::vector<tr_index> indices;
  for (tr_index i = 0; i < 100; ++i) indices.push_back(i * i * 31 % count);
  indices.push_back(indices.front());
  const std::vector<double> ones(indices.size(), 1);
  const std::vector<std::int32_t> threes(indices.size(), 3);
  for (int i = 0; i < times; ++i) {
    ok(tr_global_accumulate(sums, std::ssize(indices), indices.data(), ones.data(), TR_LOCKED), "add");
    ok(tr_global_accumulate(others, 5, indices.data(), threes.data(), TR_LOCKED), "add");
  }
  ok(tr_global_sync(sums), "sync");
  ok(tr_global_sync(others), "sync");
  std::vector<double> wanted(count, 0);
  for (const tr_index index : indices) wanted[static_cast<std::size_t>(index)] += times * size();
  std::vector<double> got(count, -1);
  ok(tr_global_read(sums, 0, count, got.data()), "read");
  CHECK(got == wanted);
  std::vector<std::int32_t> five(5, -1);
  ok(tr_global_gather(others, 5, indices.data(), five.data()), "gather");
  CHECK(five == std::vector<std::int32_t>(5, 3 * times * size()));
  ok(tr_global_free(&sums), "free");
  ok(tr_global_free(&others), "free");
}

MPI_TEST(global, long_lists_and_ranges_go_in_rounds) {
  const Session session;
  constexpr tr_index count = 1'500'000;
  tr_global* global = create(TR_I64, count);
  std::vector<tr_index> indices;
  for (tr_index i = rank(); i < count; i += size()) indices.push_back((i * 700'001) % count);
  ok(tr_global_scatter(global, std::ssize(indices), indices.data(), indices.data()), "scatter");
  ok(tr_global_sync(global), "sync");
  std::vector<std::int64_t> got(count, -1);
  ok(tr_global_read(global, 0, count, got.data()), "read");
  std::int64_t wrong = 0;
  for (tr_index i = 0; i < count; ++i) wrong += got[static_cast<std::size_t>(i)] != i ? 1 : 0;
  CHECK_EQ(wrong, 0);
  std::vector<std::int64_t> gathered(indices.size(), -1);
  ok(tr_global_gather(global, std::ssize(indices), indices.data(), gathered.data()), "gather");
  CHECK(gathered == indices);
  ok(tr_global_sync(global), "sync");
  if (rank() == size() - 1) ok(tr_global_write(global, 1, count - 1, got.data()), "write");
  ok(tr_global_sync(global), "sync");
  const tr_index last = count - 1;
  std::int64_t value = -1;
  ok(tr_global_gather(global, 1, &last, &value), "gather");
  CHECK_EQ(value, count - 2);
  ok(tr_global_free(&global), "free");
}

MPI_TEST(global, elements_cut_off_come_back_as_zeros) {
  const Session session;
  tr_global* global = create(TR_I32, 5000, "page=4KiB");
  std::vector<std::int32_t> values(5000, 7);
  if (rank() == 0) ok(tr_global_write(global, 0, 5000, values.data()), "write");
  ok(tr_global_resize(global, 4200), "resize");
  ok(tr_global_resize(global, 10), "resize");
  ok(tr_global_resize(global, 5000), "resize");
  ok(tr_global_read(global, 0, 5000, values.data()), "read");
  for (std::size_t i = 0; i < values.size(); ++i) CHECK_EQ(values[i], i < 10 ? 7 : 0);
  ok(tr_global_free(&global), "free");
}

MPI_TEST(global, what_cannot_be_made_says_why_on_every_rank) {
  const Session session("memory=64MiB");
  tr_global* global = nullptr;
  const auto fails_to_make = [&](int type, tr_index count, const char* options, int code, const char* part) {
    global = reinterpret_cast<tr_global*>(1);
    fails_everywhere(tr_global_create(type, count, options, &global), code, part);
    CHECK(global == nullptr);
  };
  fails_to_make(77, 10, nullptr, TR_ERR_ARGUMENT, "element type 77");
  fails_to_make(TR_F64, -1, nullptr, TR_ERR_ARGUMENT, "below 0");
  fails_to_make(TR_F64, INT64_MAX / 2, nullptr, TR_ERR_ARGUMENT, "64 bits");
  fails_to_make(TR_BYTE, INT64_MAX, nullptr, TR_ERR_ARGUMENT, "set page= higher");
  fails_to_make(TR_F64, 10, "pages=4KiB", TR_ERR_SETTINGS, "did you mean \"page\"?");
  fails_to_make(TR_F64, 10, "page=5000", TR_ERR_SETTINGS, "power of 2");
  fails_to_make(TR_F64, INT64_MAX / 16, "page=1GiB", TR_ERR_ARGUMENT, "pages");
  fails_to_make(TR_F64, 1'000'000'000, nullptr, TR_ERR_MEMORY, "");
  fails_everywhere(tr_global_create(TR_F64, 10, nullptr, nullptr), TR_ERR_ARGUMENT, "`global`");
  global = create(TR_F64, 100);
  fails_everywhere(tr_global_resize(global, -1), TR_ERR_ARGUMENT, "below 0");
  fails_everywhere(tr_global_resize(global, 1'000'000'000), TR_ERR_MEMORY, "");
  double value = 5;
  ok(tr_global_read(global, 99, 1, &value), "read");
  CHECK_EQ(value, 0.0);
  if (size() > 1) {
    fails_everywhere(tr_global_resize(global, 100 + rank()), TR_ERR_ORDER, "");
  }
  tr_global_free(&global);
}

MPI_TEST(global, a_bad_index_of_one_rank_is_its_own) {
  const Session session;
  tr_global* global = create(TR_F64, 1000, "page=4KiB");
  std::vector<tr_index> indices{5, 999, 0};
  std::vector<double> values{1, 2, 3};
  if (rank() == 0) ok(tr_global_scatter(global, 3, indices.data(), values.data()), "scatter");
  if (rank() == size() - 1) {
    for (const tr_index bad : {tr_index{1000}, tr_index{-1}, INT64_MAX, INT64_MIN}) {
      indices[2] = bad;
      const std::string text = "indices[2] is " + std::to_string(bad) + ", but the array has 1000 elements";
      const std::vector<double> before = values;
      fails(tr_global_gather(global, 3, indices.data(), values.data()), TR_ERR_ARGUMENT, text);
      CHECK(values == before);
      values = {-1, -1, -1};
      fails(tr_global_scatter(global, 3, indices.data(), values.data()), TR_ERR_ARGUMENT, text);
      fails(tr_global_accumulate(global, 3, indices.data(), values.data(), TR_LOCKED), TR_ERR_ARGUMENT, text);
    }
    fails(tr_global_read(global, 998, 3, values.data()), TR_ERR_ARGUMENT, "3 elements from 998 on");
    fails(tr_global_write(global, -1, 3, values.data()), TR_ERR_ARGUMENT, "from -1 on");
    fails(tr_global_read(global, 1, INT64_MAX, values.data()), TR_ERR_ARGUMENT, "numbered from 0");
    fails(tr_global_gather(global, -3, indices.data(), values.data()), TR_ERR_ARGUMENT, "n is -3");
    fails(tr_global_gather(global, 3, nullptr, values.data()), TR_ERR_ARGUMENT, "`indices`");
    fails(tr_global_gather(global, 3, indices.data(), nullptr), TR_ERR_ARGUMENT, "`values`");
    fails(tr_global_write(global, 0, 1, nullptr), TR_ERR_ARGUMENT, "`values`");
    fails(tr_global_accumulate(global, 2, indices.data(), values.data(), 9), TR_ERR_ARGUMENT, "TR_LOCKED");
    fails(tr_global_count(global, nullptr), TR_ERR_ARGUMENT, "`count`");
    fails(tr_global_sync(nullptr), TR_ERR_STATE, "not an open global array");
    ok(tr_global_gather(global, 0, nullptr, nullptr), "gather");
    ok(tr_global_read(global, 1000, 0, nullptr), "read");
  }
  ok(tr_global_sync(global), "sync");
  indices[2] = 0;
  ok(tr_global_gather(global, 3, indices.data(), values.data()), "gather");
  CHECK(values == std::vector<double>({1, 2, 3}));
  ok(tr_global_free(&global), "free");
  global = create(TR_I8, 10);
  fails(tr_global_accumulate(global, 2, indices.data(), values.data(), TR_LOCKED), TR_ERR_ARGUMENT, "int8");
  ok(tr_global_free(&global), "free");
}

MPI_TEST(global, an_array_of_some_ranks_is_theirs) {
  const Session session;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(state().comm, rank() % 2, -rank(), &half);
  int ranks = 0;
  MPI_Comm_size(half, &ranks);
  tr_global* global = nullptr;
  ok(tr_global_create_comm(half, TR_I64, 2000, "page=4KiB", &global), "create");
  MPI_Comm_free(&half);
  const tr_index index = 1999;
  const std::int64_t value = 1 + rank() % 2;
  ok(tr_global_accumulate(global, 1, &index, &value, TR_LOCKED), "add");
  ok(tr_global_sync(global), "sync");
  std::int64_t sum = 0;
  ok(tr_global_gather(global, 1, &index, &sum), "gather");
  CHECK_EQ(sum, value * ranks);
  ok(tr_global_free(&global), "free");
}

MPI_TEST(global, an_array_that_is_left_is_freed_with_a_warning) {
  CapturedStderr captured;
  {
    const Session session;
    create(TR_F64, 100);
  }
  CHECK_EQ(mentions(captured.text(), "float64[100] was left"), rank() == 0);
}

MPI_TEST_MAIN
