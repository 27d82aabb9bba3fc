// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/arrays/coordinates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "engine/arrays/gathering.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::arrays {

namespace {

/// One of the four arrays of the caller, with `width` values for each point.
struct GivenArray {
  std::string_view name;
  const double* given = nullptr;
  Index width = 1;
  double most = 0;  // the largest magnitude; 0: any number
};

class Given {
 public:
  Given(int me, node::Budget& budget, const layout::Layout& layout, const GivenCoordinates& given)
      : kept_(std::make_unique<node::Draw>(budget, node::Use::coordinates)),
        me_(me),
        budget_(budget),
        layout_(layout),
        given_(given),
        count_(layout.count(me)),
        own_drawn_(budget, node::Use::coordinates) {
    parts_ = {{"latitude", given.latitudes, 1, 90}, {"longitude", given.longitudes, 1, 0}};
    if (given.corners == 0) return;
    parts_.push_back({"latitude of a corner", given.latitude_bounds, given.corners, 90});
    parts_.push_back({"longitude of a corner", given.longitude_bounds, given.corners, 0});
  }

  /// Packs and checks what this rank owns.
  Status prepare();
  codec::Coordinates whole_;  // on rank 0 with its values
  std::unique_ptr<node::Draw> kept_;
  std::vector<layout::Rows> rows_;
  std::vector<OwnPart> own_;  // by part

 private:
  Status check_arguments() const;
  Status pack(const GivenArray& part, std::vector<double>& out) const;
  Status check_values(const GivenArray& part, const std::vector<double>& values) const;
  [[nodiscard]] Index global_of(Index owned) const;
  int me_;
  node::Budget& budget_;
  const layout::Layout& layout_;
  const GivenCoordinates& given_;
  Index count_;
  node::Draw own_drawn_;
  std::vector<GivenArray> parts_;
};

Status Given::check_arguments() const {
  const std::size_t dimensions = layout_.shape().size();
  if (layout_.has_unowned())
    return {Code::argument,
            "the layout has elements that no rank owns, and so points without coordinates: give the "
            "coordinates as fields with time=none"};
  if (dimensions > 2)
    return {Code::argument,
            cat("the layout has ", dimensions,
                " dimensions: coordinates are for those of 1 (cells) or 2 (rows and columns)")};
  if (given_.corners != 0 && (given_.corners < 3 || given_.corners > codec::most_corners))
    return {Code::argument, cat("cells of ", given_.corners, " corners: they have 3 to ", codec::most_corners,
                                ", and 0 means that no bounds are given")};
  if (given_.corners == 0 && (given_.latitude_bounds != nullptr || given_.longitude_bounds != nullptr))
    return {Code::argument,
            "bounds are given, and 0 corners: say how many corners each cell has, or give null pointers"};
  for (const GivenArray& part : parts_) {
    if (part.given == nullptr && count_ > 0)
      return {Code::argument, cat("the array of each ", part.name, " is a null pointer")};
  }
  return given_.allocation.status();
}

Status Given::prepare() {
  TR_TRY(check_arguments());
  whole_.shape = layout_.shape();
  whole_.corners = given_.corners;
  // The values exist four times: kept on rank 0, on their way to a server, in the server, and in the head of
  // its file.
  constexpr Bytes copies = 4;
  const std::optional<Bytes> size = whole_.bytes();
  Bytes all = 0;
  if (!size || __builtin_mul_overflow(*size, copies, &all))
    return {Code::memory, cat("the coordinates of ", counted(layout_.elements(), "point"), " with ",
                              given_.corners, " corners each are more than any memory has")};
  const Bytes bytes = *size, limit = budget_.limit();
  const auto needed = [&] {
    return cat("the coordinates take ", size_text(bytes), ", and ", copies, " times that, ", size_text(all),
               ", on a node while files get them: set TAILRACE_MEMORY to more");
  };
  if (all > limit) return {Code::memory, cat(needed(), " than its ", size_text(limit))};
  const Bytes own = count_ * (bytes / std::max<Index>(1, layout_.elements()));
  TR_TRY(own_drawn_.take(own).in(needed()));
  if (me_ == 0) TR_TRY(kept_->take(bytes).in(needed()));
  if (count_ > 0) rows_ = layout_.rows(me_);
  for (const GivenArray& part : parts_) {
    std::vector<double> values;
    TR_TRY(pack(part, values));
    TR_TRY(check_values(part, values));
    const auto bytes_of = std::as_bytes(std::span(values));
    own_.push_back({{bytes_of.begin(), bytes_of.end()}, sizeof(double), part.width});
  }
  if (me_ == 0) whole_.values.resize(static_cast<std::size_t>(bytes));
  return {};
}

Status Given::pack(const GivenArray& part, std::vector<double>& out) const {
  if (count_ == 0) return {};
  layout::Allocation allocation = *given_.allocation;
  allocation.levels = part.width;
  // The corners of a cell lie side by side, as levels may do.
  const int dimensions = static_cast<int>(layout_.shape().size());
  allocation.level_axis = layout_.is_box() ? dimensions : layout_.is_tiled() ? dimensions + 1 : 1;
  const Result<layout::MemoryMap> map = layout::memory_map(layout_, me_, ElementType::f64, allocation);
  TR_TRY(map.status());
  std::vector<double> level(static_cast<std::size_t>(count_));
  out.resize(level.size() * static_cast<std::size_t>(part.width));
  const auto width = static_cast<std::size_t>(part.width);
  for (std::size_t k = 0; k < width; ++k) {
    layout::pack(*map, reinterpret_cast<const std::byte*>(part.given), static_cast<Index>(k),
                 reinterpret_cast<std::byte*>(level.data()));
    for (std::size_t i = 0; i < level.size(); ++i) out[i * width + k] = level[i];
  }
  return {};
}

Status Given::check_values(const GivenArray& part, const std::vector<double>& values) const {
  const auto is_place = [&](double value) {
    return std::isfinite(value) && (part.most == 0 || std::fabs(value) <= part.most);
  };
  const auto wrong = std::ranges::find_if_not(values, is_place);
  if (wrong == values.end()) return {};
  const Index owned = (wrong - values.begin()) / part.width;
  return {Code::data, cat("rank ", me_, ", index ", global_of(owned), ": the ", part.name, " is ", *wrong,
                          part.most > 0 ? ", and must lie from -90 to 90" : ", and must be finite")};
}

Index Given::global_of(Index owned) const {
  Index global = 0;
  for_each_run(rows_, [&](Index begin, Index count, Index first) {
    if (owned >= first && owned < first + count) global = begin + owned - first;
  });
  return global;
}

}  // namespace

Result<GatheredCoordinates> gather_coordinates(comm::Line& line,
                                               const std::function<comm::Verdict(comm::Vote)>& agree,
                                               node::Budget& budget, const std::string& call,
                                               const layout::Layout& layout, const GivenCoordinates& given) {
  Given own(line.rank(), budget, layout, given);
  const Status mine = guarded([&] { return own.prepare(); });
  TR_TRY(agree({mine.in(call), call, {}}).status);
  codec::Coordinates& whole = own.whole_;
  const comm::Verdict verdict =
      gather({line, agree, call, "coordinates", layout, own.rows_, own.own_}, whole.values, [&] {
        Packer out;
        return out.put(checksum(whole.values)).take();
      });
  TR_TRY(verdict.status);
  whole.checksum = Unpacker(verdict.contributions[0]).get<std::uint64_t>();
  return GatheredCoordinates{std::make_shared<const codec::Coordinates>(std::move(whole)),
                             std::move(own.kept_)};
}

}  // namespace tailrace::arrays
