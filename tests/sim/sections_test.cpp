// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Fields of which files have a section of the array (section=). The files have the bytes of a program that
// cuts the section out itself, for any format, layout, ranks and servers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "ground/base/byte_order.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace sections_test {

using streams::PlacedLayout;
using streams::Stream;

/// Where the points of the array lie.
enum class Place { nowhere, map, told, named };

struct Cut {
  std::vector<Index> whole, start, stride, count;

  [[nodiscard]] std::string text() const {
    std::string text;
    for (std::size_t d = 0; d < whole.size(); ++d)
      text +=
          cat(d == 0 ? "" : ",", start[d], ":", start[d] + (count[d] - 1) * stride[d] + 1, ":", stride[d]);
    return text;
  }
  /// Returns the elements of the whole array that belong to it, in C order.
  [[nodiscard]] std::vector<Index> elements() const {
    std::vector<Index> all;
    for (Index y = 0; y < count[0]; ++y)
      for (Index x = 0; x < count[1]; ++x)
        all.push_back((start[0] + y * stride[0]) * whole[1] + start[1] + x * stride[1]);
    return all;
  }
};

Cut everything(const std::vector<Index>& shape) { return {shape, {0, 0}, {1, 1}, shape}; }

Cut random_cut(Scheduler& dice) {
  Cut cut;
  for (int d = 0; d < 2; ++d) {
    const Index extent = dice.random(2, 9), start = dice.random(0, extent - 1);
    const Index stride = dice.random(1, 4), most = (extent - 1 - start) / stride + 1;
    cut.whole.push_back(extent);
    cut.start.push_back(start);
    cut.count.push_back(dice.once_in(3) ? dice.random(1, most) : most);
    cut.stride.push_back(cut.count.back() > 1 ? stride : 1);
  }
  return cut;
}

struct Plan {
  std::string format;
  Place place = Place::nowhere;
  bool has_interval = false;
  Index levels = 1;

  [[nodiscard]] bool is_grib() const { return format.starts_with("grib"); }
  [[nodiscard]] bool has_static() const { return format != "raw" && !is_grib(); }
  [[nodiscard]] bool has_means() const { return place == Place::named && !is_grib(); }
  [[nodiscard]] std::string stream_options() const {
    return cat("base=2026-03-01 manifest=off format=", format, has_interval ? " interval=1h" : "");
  }
};

float value_at(Index level, std::int64_t step, Index element) {
  return static_cast<float>((element * 37 + step * 101 + level * 11) % 113) * 0.37F;
}

ByteVector big_endian(const std::vector<double>& values) {
  ByteVector bytes(values.size() * sizeof(double));
  copy_ordered(bytes.data(), reinterpret_cast<const std::byte*>(values.data()), std::ssize(bytes),
               sizeof(double), std::endian::big);
  return bytes;
}

/// Returns the coordinates of the elements, with three corners for each.
std::shared_ptr<const codec::Coordinates> coordinates_of(const Cut& cut, bool with_values) {
  const std::vector<Index> all = cut.elements();
  std::vector<double> values;
  for (const double unit : {0.5, 1.5})
    for (const Index element : all) values.push_back(unit * static_cast<double>(element));
  for (const double unit : {0.25, 1.25})
    for (const Index element : all)
      for (const int corner : {0, 1, 2}) values.push_back(unit * static_cast<double>(element) + corner);
  codec::Coordinates told{cut.count, 3, 0, big_endian(values)};
  told.checksum = checksum(told.values);
  if (!with_values) told.values.clear();
  return std::make_shared<const codec::Coordinates>(std::move(told));
}

codec::Axis axis_of(const Cut& cut, std::size_t d) {
  codec::Axis axis{d == 0 ? "y" : "x", ElementType::f64, {}, {}, {{"units", "m"}}};
  const auto put = [](ByteVector& to, double value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  };
  for (Index i = 0; i < cut.count[d]; ++i) {
    const auto at = static_cast<double>(cut.start[d] + i * cut.stride[d]);
    put(axis.values, 100 * at);
    put(axis.bounds, 100 * at - 50);
    put(axis.bounds, 100 * at + 50);
  }
  return axis;
}

/// Gives the layout the place of its elements, as a program would.
void put_in_place(const Plan& plan, const Cut& cut, int rank, PlacedLayout& placed) {
  if (plan.place == Place::told) placed.georeference.coordinates = coordinates_of(cut, rank == 0);
  if (plan.place == Place::named) {
    placed.dimensions = {"y", "x"};
    placed.axes = {axis_of(cut, 0), axis_of(cut, 1)};
  }
  if (plan.place != Place::map) return;
  const auto degrees = [&](std::size_t d, Index i, double first, double step) {
    return cat(first + step * static_cast<double>(cut.start[d] + i * cut.stride[d]));
  };
  // Eighths are exact, and so are their sums.
  placed.georeference.keys = {
      {"gridType", "rotated_ll"},
      {"latitudeOfSouthernPoleInDegrees", "-40"},
      {"longitudeOfSouthernPoleInDegrees", "10"},
      {"latitudeOfFirstGridPointInDegrees", degrees(0, 0, 20, -0.125)},
      {"latitudeOfLastGridPointInDegrees", degrees(0, cut.count[0] - 1, 20, -0.125)},
      {"longitudeOfFirstGridPointInDegrees", degrees(1, 0, 5, 0.25)},
      {"longitudeOfLastGridPointInDegrees", degrees(1, cut.count[1] - 1, 5, 0.25)},
      {"iDirectionIncrementInDegrees", cat(0.25 * static_cast<double>(cut.stride[1]))},
      {"jDirectionIncrementInDegrees", cat(0.125 * static_cast<double>(cut.stride[0]))}};
}

/// Deals the whole array out to ranks. Indexed layouts may be known in parts.
struct Distribution {
  std::optional<layout::Layout> known;
  std::vector<std::vector<Index>> lists;

  [[nodiscard]] PlacedLayout placed(const std::vector<Index>& shape, int rank) const {
    if (known) return {*known, 7, {}, {}, {}, false};
    std::vector<int> idle;
    for (std::size_t r = 0; r < lists.size(); ++r)
      if (lists[r].empty()) idle.push_back(static_cast<int>(r));
    const std::vector<Index>& own = lists[static_cast<std::size_t>(rank)];
    return {*layout::Layout::indexed_part(shape, rank, static_cast<int>(lists.size()), own, idle),
            7,
            {},
            {},
            own,
            true};
  }
};

Distribution random_distribution(Scheduler& dice, const std::vector<Index>& shape, int ranks) {
  Distribution out;
  const std::int64_t kind = dice.random(0, 5);
  if (kind == 0) out.known = *layout::Layout::block(shape, ranks);
  if (kind == 1)
    out.known = *layout::Layout::block_cyclic(shape, ranks, {dice.random(1, 3), dice.random(1, 3)});
  if (kind == 2) out.known = *layout::Layout::replicated(shape, ranks);
  if (out.known) return out;
  out.lists.resize(static_cast<std::size_t>(ranks));
  for (Index element = shape[0] * shape[1]; element-- > 0;)
    out.lists[static_cast<std::size_t>(dice.random(0, ranks - 1))].push_back(element);
  if (kind == 3) out.known = *layout::Layout::indexed(shape, out.lists);
  if (kind == 4) {  // a tile for each element
    std::vector<std::vector<layout::Box>> tiles(out.lists.size());
    for (std::size_t r = 0; r < tiles.size(); ++r)
      for (const Index element : out.lists[r]) {
        const Index y = element / shape[1], x = element % shape[1];
        tiles[r].push_back({{y, x}, {y + 1, x + 1}});
      }
    out.known = *layout::Layout::tiles(shape, tiles, false);
  }
  return out;
}

std::vector<Index> own_elements(const layout::Layout& layout, int rank) {
  std::vector<Index> own;
  for (const layout::Rows& rows : layout.rows(rank))
    for (Index row = 0; row < rows.rows; ++row)
      for (Index k = 0; k < rows.count; ++k) own.push_back(rows.global + row * rows.stride + k);
  return own;
}

/// One rank of a program that writes a file. `own` are the elements of the whole array that it has.
class Program {
 public:
  Program(const Plan& plan, std::string section, std::vector<Index> own)
      : plan_(plan), section_(std::move(section)), own_(std::move(own)) {}

  void run(SessionRank& rank, const PlacedLayout& placed, bool backwards) {
    const std::string pattern = name_for("fc.data", plan_.format);
    auto made = Stream::create(rank.session(), pattern, plan_.stream_options());
    ASSERT_TRUE(made.is_ok()) << made.status().text();
    Stream& stream = **made;
    if (plan_.has_static()) define(stream, "mask", placed, "time=none");
    define(stream, "t", placed,
           cat("levels=hybrid:1-", plan_.levels, plan_.has_interval ? " operation=mean" : ""));
    if (plan_.has_means())
      define(stream, "zonal", placed, plan_.has_static() ? "over=mean:x weights=mask" : "over=mean:x");
    if (plan_.has_static()) put(stream, "mask", 1, 0, placed, backwards);
    for (std::int64_t step = 1; step <= 4; ++step) {
      stream.begin(step * 1800);
      put(stream, "t", plan_.levels, step, placed, backwards);
      if (plan_.has_means()) put(stream, "zonal", 1, step, placed, backwards);
      const Status ended = stream.end();
      EXPECT_TRUE(ended.is_ok()) << ended.text();
    }
    const Status closed = stream.close();
    EXPECT_TRUE(closed.is_ok()) << closed.text();
  }

 private:
  void define(Stream& stream, const char* name, const PlacedLayout& placed, const std::string& options) {
    const Status status = stream.define(name, &placed, static_cast<int>(ElementType::f32),
                                        cat(options, section_.empty() ? "" : cat(" section=", section_)));
    EXPECT_TRUE(status.is_ok()) << status.text();
  }

  /// Puts (level, own elements) as it is allocated, or all of it backwards in memory.
  void put(Stream& stream, const char* name, Index levels, std::int64_t step, const PlacedLayout& placed,
           bool backwards) {
    std::vector<float>& array = arrays_[{name, step}];
    for (Index level = 0; level < levels; ++level)
      for (const Index element : own_) array.push_back(value_at(level, step, element));
    array.reserve(1);
    if (!backwards || own_.empty()) return expect(stream.put(name, array.data(), nullptr));
    std::ranges::reverse(array);
    streams::ArrayShape shape;
    if (levels > 1) shape.extents = {levels};
    if (placed.layout.is_box()) {
      const layout::Box box = placed.layout.box(rank_of(placed));
      for (std::size_t d = 0; d < 2; ++d) shape.extents.push_back(box.upper[d] - box.lower[d]);
    } else {
      shape.extents.push_back(std::ssize(own_));
    }
    Bytes stride = -static_cast<Bytes>(sizeof(float));
    for (std::size_t d = shape.extents.size(); d-- > 0; stride *= shape.extents[d])
      shape.strides.insert(shape.strides.begin(), stride);
    expect(stream.put(name, &array.back(), &shape));
  }
  static void expect(const Status& status) { EXPECT_TRUE(status.is_ok()) << status.text(); }
  [[nodiscard]] int rank_of(const PlacedLayout& placed) const {
    return placed.layout.kind() == "replicated" ? 0 : placed.layout.owner(own_.front());
  }

  const Plan& plan_;
  std::string section_;
  std::vector<Index> own_;
  std::map<std::pair<std::string, std::int64_t>, std::vector<float>> arrays_;
};

/// Returns the file of a program of one rank that cuts the section out itself.
ByteVector cut_by_itself(const Plan& plan, const Cut& cut) {
  Job job;
  job.nodes = {{1, 0}};
  SessionWorld world(job);
  Program program(plan, "", cut.elements());
  const Texts stuck = world.run([&](SessionRank& rank) {
    PlacedLayout placed{*layout::Layout::block(cut.count, 1), 0, {}, {}, {}, false};
    put_in_place(plan, cut, 0, placed);
    program.run(rank, placed, false);
  });
  EXPECT_EQ(stuck, Texts());
  return read_file(world.storage(), name_for("fc.data", plan.format));
}

std::vector<std::string> formats_here() {
  std::vector<std::string> names;
  for (const formats::Format& format : formats::all())
    if (format.make != nullptr && format.name != "cdf1" && format.name != "cdf2")
      names.emplace_back(format.name);
  return names;
}

TEST(sim_sections, files_have_the_bytes_of_a_program_that_cuts_them_out_itself) {
  const std::vector<std::string> formats = formats_here();
  ASSERT_GE(formats.size(), 2U);
  std::map<std::string, int> tried;
  for (std::uint64_t seed = 1; seed <= seeds(120); ++seed) {
    Scheduler dice(seed * 6151);
    Plan plan;
    plan.format = formats[seed % formats.size()];
    plan.place = plan.is_grib() ? Place::map : static_cast<Place>(dice.random(0, 3));
    plan.has_interval = dice.once_in(3);
    plan.levels = dice.random(1, 3);
    const Cut cut = random_cut(dice);
    SCOPED_TRACE(cat("seed ", seed, ", ", plan.format, ", section=", cut.text(), " of ", cut.whole[0], " x ",
                     cut.whole[1], ", place ", static_cast<int>(plan.place)));
    const ByteVector expected = cut_by_itself(plan, cut);
    ASSERT_FALSE(expected.empty());
    Job job;
    job.nodes = random_nodes(dice, static_cast<int>(dice.random(1, 5)), static_cast<int>(dice.random(0, 3)));
    job.seed = seed;
    SessionWorld world(job);
    const Distribution whole = random_distribution(dice, cut.whole, world.ranks());
    const bool backwards = dice.once_in(2);
    std::map<int, Program> programs;
    const Texts stuck = world.run([&](SessionRank& rank) {
      const int me = rank.rank();
      PlacedLayout placed = whole.placed(cut.whole, me);
      put_in_place(plan, everything(cut.whole), me, placed);
      // Other ranks put nothing of what rank 0 owns, but have it.
      const int owner = placed.layout.kind() == "replicated" ? 0 : me;
      Program& program =
          programs.emplace(me, Program(plan, cut.text(), own_elements(placed.layout, owner))).first->second;
      program.run(rank, placed, backwards);
    });
    ASSERT_EQ(stuck, Texts());
    for (const Status& each : world.failures()) ADD_FAILURE() << each.text();
    ASSERT_TRUE(read_file(world.storage(), name_for("fc.data", plan.format)) == expected);
    ++tried[plan.format];
  }
  EXPECT_EQ(tried.size(), formats.size());
}

/// Returns what each rank hears of a definition.
std::vector<Status> define_on_all(const std::string& stream_options, const PlacedLayout& placed,
                                  const std::vector<std::string>& options) {
  Job job;
  job.nodes = {{3, 1}};
  SessionWorld world(job);
  std::vector<Status> heard(3);
  const Texts stuck = world.run([&](SessionRank& rank) {
    auto stream = Stream::create(rank.session(), "fc.data", cat("base=2026-03-01 ", stream_options));
    ASSERT_TRUE(stream.is_ok()) << stream.status().text();
    for (std::size_t i = 0; i < options.size(); ++i)
      heard[static_cast<std::size_t>(rank.rank())] = (*stream)->define(
          i == 0 ? std::string("t") : cat("t", i), &placed, static_cast<int>(ElementType::f32), options[i]);
  });
  EXPECT_EQ(stuck, Texts());
  return heard;
}

PlacedLayout on_map(const std::vector<Index>& shape, codec::Keys keys) {
  PlacedLayout placed{*layout::Layout::block(shape, 3), 0, {}, {}, {}, false};
  placed.georeference.keys = std::move(keys);
  return placed;
}

TEST(sim_sections, a_wrong_section_is_told_on_every_rank) {
  const PlacedLayout plain{*layout::Layout::block({6, 8}, 3), 0, {}, {}, {}, false};
  for (const auto& [section, text] :
       std::vector<std::pair<std::string, std::string>>{{"0:7,:", "stops beyond its 6 elements"},
                                                        {"6:,:", "has no element"},
                                                        {"4:2,:", "has no element"},
                                                        {"::0,:", "must be above 0"},
                                                        {"::-1,:", "must be above 0"},
                                                        {"-1:,:", "below 0"},
                                                        {"2,:", "is no section of a dimension"},
                                                        {"1:2:3:4,:", "is no section of a dimension"},
                                                        {"a:,:", "a"},
                                                        {"::2", "the layout has 2 dimensions (6 x 8"},
                                                        {"::2,::2,::2", "section= has 3 parts"}}) {
    const std::vector<Status> heard = define_on_all("format=raw", plain, {cat("section=", section)});
    for (const Status& each : heard) {
      EXPECT_EQ(each.code(), Code::settings) << section << ": " << each.text();
      EXPECT_NE(each.text().find(text), std::string::npos) << each.text();
      EXPECT_EQ(each.text(), heard[0].text());
    }
  }
  PlacedLayout scalar{*layout::Layout::replicated({1}, 3), 0, {}, {}, {}, false};
  scalar.is_scalar = true;
  for (const Status& each : define_on_all("format=raw", scalar, {"section=:"}))
    EXPECT_NE(each.text().find("0 dimensions: leave it out"), std::string::npos) << each.text();
}

codec::Keys plain_map() {
  return {{"gridType", "regular_ll"},
          {"latitudeOfFirstGridPointInDegrees", "60"},
          {"longitudeOfFirstGridPointInDegrees", "5"},
          {"latitudeOfLastGridPointInDegrees", "50"},
          {"longitudeOfLastGridPointInDegrees", "19"}};
}

TEST(sim_sections, what_grib_cannot_describe_is_refused_on_every_rank) {
  if (!formats::find("grib2").is_ok() || (*formats::find("grib2"))->make == nullptr) GTEST_SKIP();
  const auto expect = [](const PlacedLayout& placed, const std::string& section, const std::string& text) {
    for (const char* const format : {"format=grib2", "format=grib1"}) {
      for (const Status& each : define_on_all(format, placed, {section})) {
        EXPECT_EQ(each.code(), Code::format) << each.text();
        EXPECT_NE(each.text().find(text), std::string::npos) << each.text();
      }
    }
    for (const Status& each : define_on_all("format=raw", placed, {section}))
      EXPECT_TRUE(each.is_ok()) << each.text();
  };
  expect(on_map({16, 32}, {{"gridType", "regular_gg"}, {"N", "8"}}),
         "section=::2,:", "give the rows the stride 1");
  expect(on_map({192}, {{"gridType", "healpix"}, {"Nside", "4"}}), "section=::2",
         "a part of a grid 'healpix'");
  expect(on_map({100}, {{"gridType", "unstructured_grid"}}), "section=:50",
         "a part of a grid 'unstructured_grid'");
  codec::Keys alternating = plain_map();
  alternating.emplace_back("alternativeRowScanning", "1");
  expect(on_map({6, 8}, alternating), "section=::2,:",
         "'alternativeRowScanning': the grid of a section is known where rows lie one after another");
  for (const Status& each : define_on_all(
           "format=grib2", on_map({16, 32}, {{"gridType", "regular_gg"}, {"N", "8"}}), {"section=4:9,::4"}))
    EXPECT_TRUE(each.is_ok()) << each.text();
}

/// Runs a stream of one step with two fields on a layout with named dimensions, and returns its file.
ByteVector two_fields(const std::string& first, const std::string& second, Status* told = nullptr) {
  Job job;
  job.nodes = {{1, 0}};
  SessionWorld world(job);
  const std::vector<float> values(48, 1);
  const Texts stuck = world.run([&](SessionRank& rank) {
    auto stream = Stream::create(rank.session(), "fc.nc", "base=2026-03-01 manifest=off");
    ASSERT_TRUE(stream.is_ok()) << stream.status().text();
    PlacedLayout placed{*layout::Layout::block({6, 8}, 1), 0, {}, {}, {}, false};
    placed.dimensions = {"y", "x"};
    placed.axes = {axis_of(everything({6, 8}), 0), axis_of(everything({6, 8}), 1)};
    const int type = static_cast<int>(ElementType::f32);
    Status status = (*stream)->define("a", &placed, type, first);
    if (status.is_ok()) status = (*stream)->define("b", &placed, type, second);
    if (told != nullptr) *told = status;
    if (!status.is_ok()) return;
    (*stream)->begin(0);
    (void)(*stream)->put("a", values.data(), nullptr);
    (void)(*stream)->put("b", values.data(), nullptr);
    EXPECT_TRUE((*stream)->end().is_ok());
    EXPECT_TRUE((*stream)->close().is_ok());
  });
  EXPECT_EQ(stuck, Texts());
  return read_file(world.storage(), "fc.nc");
}

bool has_text(const ByteVector& bytes, std::string_view text) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(text) !=
         std::string_view::npos;
}

TEST(sim_sections, a_dimension_that_is_cut_gets_a_name_of_its_own_beside_the_whole_one) {
  const ByteVector beside = two_fields("", "section=:,::2");
  EXPECT_TRUE(has_text(beside, "x_2") && has_text(beside, "x_2_bnds"));
  EXPECT_FALSE(has_text(beside, "y_2")) << "y is whole in both";
  const ByteVector alone = two_fields("section=:,::2", "section=:,::2");
  EXPECT_FALSE(has_text(alone, "x_2")) << "both have the same section";
  const ByteVector other = two_fields("section=:,::2", "section=:,1::2");
  EXPECT_TRUE(has_text(other, "x_2")) << "as many elements, but others";
  const ByteVector all = two_fields("section=:,:", "section=0:6,0:8:1");
  EXPECT_TRUE(all == two_fields("", "")) << "the section of all is the whole array";
  const ByteVector mean = two_fields("", "section=0:4,: over=mean:y");
  EXPECT_TRUE(has_text(mean, "y: mean") && !has_text(mean, "y_2")) << "the file has no y_2";
  Status refused;
  two_fields("section=:,::2", "", &refused);
  EXPECT_NE(refused.text().find("dimension 'x'"), std::string::npos) << refused.text();
}

TEST(sim_sections, a_run_with_another_section_does_not_go_on_in_the_file) {
  const auto storage = storage::memory_target();
  const auto run = [&](const std::string& section, const std::string& file = "fc.raw") {
    Job job;
    job.nodes = {{2, 1}};
    job.storage = storage;
    SessionWorld world(job);
    const std::vector<float> values(100, 1);
    static std::int64_t lead = 0;
    lead += 3600;
    std::vector<Status> heard(2);
    const Texts stuck = world.run([&](SessionRank& rank) {
      auto stream =
          Stream::create(rank.session(), file, "base=2026-03-01 manifest=off format=raw existing=continue");
      ASSERT_TRUE(stream.is_ok()) << stream.status().text();
      PlacedLayout placed{*layout::Layout::block({10, 10}, 2), 0, {}, {}, {}, false};
      placed.dimensions = {"y", "x"};
      const Status defined = (*stream)->define("t", &placed, static_cast<int>(ElementType::f32), section);
      ASSERT_TRUE(defined.is_ok()) << defined.text();
      (*stream)->begin(lead);
      (void)(*stream)->put("t", values.data(), nullptr);
      const Status ended = (*stream)->end(), waited = (*stream)->wait(true), closed = (*stream)->close();
      heard[static_cast<std::size_t>(rank.rank())] = !ended.is_ok()   ? ended
                                                     : waited.is_ok() ? closed
                                                                      : waited;
    });
    EXPECT_EQ(stuck, Texts());
    EXPECT_EQ(heard[0].text(), heard[1].text());
    return heard[0];
  };
  EXPECT_TRUE(run("section=0:10:2,:").is_ok());
  EXPECT_TRUE(run("section=::2,:").is_ok()) << "the same elements";
  const Status other = run("section=1:10:2,:");
  EXPECT_EQ(other.code(), Code::state);
  EXPECT_NE(other.text().find("another section"), std::string::npos) << other.text();
  EXPECT_TRUE(run("section=:9:2,0:").is_ok());
  EXPECT_EQ(read_file(*storage, "fc.raw").size(), 3U * 5 * 10 * sizeof(float));
  // Records over a dimension have the same shape, however many of its elements the section has.
  EXPECT_TRUE(run("over=mean:y section=0:2,:", "means.raw").is_ok());
  const Status longer = run("over=mean:y section=0:4,:", "means.raw");
  EXPECT_EQ(longer.code(), Code::state);
  EXPECT_NE(longer.text().find("another section"), std::string::npos) << longer.text();
  EXPECT_TRUE(run("over=mean:y section=:2,:", "means.raw").is_ok());
}

TEST(sim_sections, weights_of_other_elements_are_refused_without_names) {
  const PlacedLayout map = on_map({6, 8}, plain_map());
  const std::string mean = "over=mean:lon weights=t section=";
  for (const Status& each : define_on_all("format=cdf5", map, {"time=none section=::2,:", mean + "::2,:"}))
    EXPECT_TRUE(each.is_ok()) << each.text();
  for (const Status& each : define_on_all("format=cdf5", map, {"time=none section=::2,:", mean + "1::2,:"})) {
    EXPECT_EQ(each.code(), Code::settings) << each.text();
    EXPECT_NE(each.text().find("with the same section="), std::string::npos) << each.text();
  }
}

TEST(sim_sections, ranks_that_disagree_on_a_section_of_indices_hear_of_it_and_go_on) {
  Job job;
  job.nodes = {{3, 1}};
  SessionWorld world(job);
  std::vector<std::vector<Index>> lists(3);
  for (Index element = 0; element < 48; ++element)
    lists[static_cast<std::size_t>(element % 3)].push_back(element);
  const Distribution parts{{}, lists};
  const Texts stuck = world.run([&](SessionRank& rank) {
    auto stream = Stream::create(rank.session(), "fc.raw", "base=2026-03-01 manifest=off format=raw");
    ASSERT_TRUE(stream.is_ok()) << stream.status().text();
    const PlacedLayout placed = parts.placed({6, 8}, rank.rank());
    const int type = static_cast<int>(ElementType::f32);
    for (const std::string without : {"", "section=1::2,:"})
      EXPECT_FALSE(
          (*stream)->define("t", &placed, type, rank.rank() == 1 ? without : "section=::2,:").is_ok());
    const Status defined = (*stream)->define("t", &placed, type, "section=::2,:");
    EXPECT_TRUE(defined.is_ok()) << defined.text();
    const std::vector<float> values(48, 1);
    (*stream)->begin(0);
    (void)(*stream)->put("t", values.data(), nullptr);
    EXPECT_TRUE((*stream)->end().is_ok());
    EXPECT_TRUE((*stream)->close().is_ok());
  });
  EXPECT_EQ(stuck, Texts());
}

TEST(sim_sections, numbers_behind_names_make_no_name_of_another_dimension) {
  PlacedLayout placed{*layout::Layout::block({6, 8}, 3), 0, {}, {}, {}, false};
  placed.dimensions = {"x", "x_2"};
  for (const Status& each : define_on_all("format=cdf5", placed, {"", "section=::2,:"}))
    EXPECT_TRUE(each.is_ok()) << each.text();
}

TEST(sim_sections, dimensions_that_got_other_names_are_known_by_those) {
  Job job;
  job.nodes = {{1, 0}};
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    auto stream = Stream::create(rank.session(), "fc.nc", "base=2026-03-01 manifest=off");
    ASSERT_TRUE(stream.is_ok()) << stream.status().text();
    PlacedLayout placed{*layout::Layout::block({6, 8}, 1), 0, {}, {}, {}, false};
    const int type = static_cast<int>(ElementType::f32);
    placed.dimensions = {"y", "x"};
    EXPECT_TRUE((*stream)->define("a", &placed, type, "").is_ok());
    placed.dimensions = {"j", "i"};
    EXPECT_TRUE((*stream)->define("b", &placed, type, "").is_ok());
    const Status status = (*stream)->define("c", &placed, type, "section=::2,::2");
    EXPECT_TRUE(status.is_ok()) << status.text();
  });
  EXPECT_EQ(stuck, Texts());
}

TEST(sim_sections, an_array_of_the_sections_own_shape_is_refused) {
  Job job;
  job.nodes = {{1, 0}};
  SessionWorld world(job);
  const std::vector<float> values(48, 1);
  const Texts stuck = world.run([&](SessionRank& rank) {
    auto stream = Stream::create(rank.session(), "fc.raw", "base=2026-03-01 manifest=off format=raw");
    ASSERT_TRUE(stream.is_ok()) << stream.status().text();
    const PlacedLayout placed{*layout::Layout::block({6, 8}, 1), 0, {}, {}, {}, false};
    ASSERT_TRUE(
        (*stream)->define("t", &placed, static_cast<int>(ElementType::f32), "section=::2,::2").is_ok());
    (*stream)->begin(0);
    const streams::ArrayShape shape{ElementType::f32, {3, 4}, {}};
    (void)(*stream)->put("t", values.data(), &shape);
    const Status ended = (*stream)->end();
    EXPECT_EQ(ended.code(), Code::layout);
    EXPECT_NE(ended.text().find("section= takes its part of the array of the whole layout"),
              std::string::npos)
        << ended.text();
    static_cast<void>((*stream)->close());
  });
  EXPECT_EQ(stuck, Texts());
}

}  // namespace sections_test
}  // namespace tailrace::sim
