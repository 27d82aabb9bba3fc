// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/arrays/coordinates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "ground/base/byte_order.hpp"
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

/// Elements of a rank that follow one another in the global array.
struct Run {
  Index global = 0;
  Index count = 0;
};

class Gathering {
 public:
  Gathering(int me, node::Budget& budget, const layout::Layout& layout, const GivenCoordinates& given)
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
  /// Returns the elements of this rank whose global numbers lie from `begin` to `end`, with their values.
  [[nodiscard]] ByteVector portion(Index begin, Index end) const;
  /// On rank 0: copies a portion that any rank has sent to its place in the whole.
  Status place(std::span<const std::byte> portion);
  [[nodiscard]] Index in_portion() const {
    constexpr Index usual = Index{8} << 20;
    return std::max<Index>(1, usual / (16 * (1 + given_.corners)));
  }
  codec::Coordinates whole_;  // on rank 0 with its values
  std::unique_ptr<node::Draw> kept_;

 private:
  Status check_arguments() const;
  Status pack(const GivenArray& part, std::vector<double>& out) const;
  Status check_values(const GivenArray& part, const std::vector<double>& values) const;
  [[nodiscard]] Index global_of(Index owned) const;
  template <typename Each>
  void for_each_run(Each each) const {
    Index owned = 0;
    for (const layout::Rows& rows : rows_) {
      for (Index row = 0; row < rows.rows; ++row, owned += rows.count)
        each(Run{rows.global + row * rows.stride, rows.count}, owned);
    }
  }

  int me_;
  node::Budget& budget_;
  const layout::Layout& layout_;
  const GivenCoordinates& given_;
  Index count_;
  node::Draw own_drawn_;
  std::vector<GivenArray> parts_;
  std::vector<layout::Rows> rows_;
  std::vector<std::vector<double>> own_;  // by part, in packed order
};

Status Gathering::check_arguments() const {
  const std::size_t dimensions = layout_.shape().size();
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

Status Gathering::prepare() {
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
    std::vector<double>& values = own_.emplace_back();
    TR_TRY(pack(part, values));
    TR_TRY(check_values(part, values));
  }
  if (me_ == 0) whole_.values.resize(static_cast<std::size_t>(bytes));
  return {};
}

Status Gathering::pack(const GivenArray& part, std::vector<double>& out) const {
  if (count_ == 0) return {};
  layout::Allocation allocation = *given_.allocation;
  allocation.levels = part.width;
  // The corners of a cell lie side by side, as levels may do.
  allocation.level_axis = layout_.is_box() ? static_cast<int>(layout_.shape().size()) : 1;
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

Status Gathering::check_values(const GivenArray& part, const std::vector<double>& values) const {
  const auto is_place = [&](double value) {
    return std::isfinite(value) && (part.most == 0 || std::fabs(value) <= part.most);
  };
  const auto wrong = std::ranges::find_if_not(values, is_place);
  if (wrong == values.end()) return {};
  const Index owned = (wrong - values.begin()) / part.width;
  return {Code::data, cat("rank ", me_, ", index ", global_of(owned), ": the ", part.name, " is ", *wrong,
                          part.most > 0 ? ", and must lie from -90 to 90" : ", and must be finite")};
}

Index Gathering::global_of(Index owned) const {
  Index global = 0;
  for_each_run([&](const Run& run, Index first) {
    if (owned >= first && owned < first + run.count) global = run.global + owned - first;
  });
  return global;
}

ByteVector Gathering::portion(Index begin, Index end) const {
  std::vector<Run> runs;
  std::vector<Index> owned;  // by run: its first element, in packed order
  for_each_run([&](const Run& run, Index first) {
    const Index from = std::max(run.global, begin), to = std::min(run.global + run.count, end);
    if (from >= to) return;
    const Index at = first + from - run.global;
    // Elements of an indexed layout may be neighbours in runs of their own.
    if (!runs.empty() && runs.back().global + runs.back().count == from &&
        owned.back() + runs.back().count == at)
      runs.back().count += to - from;
    else
      runs.push_back({from, to - from}), owned.push_back(at);
  });
  if (runs.empty()) return {};
  Packer out;
  out.put_list(std::span<const Run>(runs));
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const auto width = static_cast<std::size_t>(parts_[p].width);
    std::vector<double> values;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const auto first =
          own_[p].begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(owned[r]) * width);
      values.insert(values.end(), first,
                    first + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(runs[r].count) * width));
    }
    out.put_list(std::span<const double>(values));
  }
  return out.take();
}

Status Gathering::place(std::span<const std::byte> portion) {
  Unpacker in(portion);
  const std::vector<Run> runs = in.get_list<Run>();
  Bytes begin = 0;  // of the part in the whole
  for (const GivenArray& part : parts_) {
    const std::vector<double> values = in.get_list<double>();
    std::size_t at = 0;
    for (const Run& run : runs) {
      const auto count = static_cast<std::size_t>(run.count * part.width);
      const bool inside = run.global >= 0 && run.count >= 0 && run.count <= layout_.elements() - run.global;
      if (!in.ok() || !inside || values.size() - at < count)
        return {Code::corrupt, "a part of the coordinates is not whole"};
      std::byte* const to = whole_.values.data() + begin + run.global * part.width * 8;
      copy_ordered(to, reinterpret_cast<const std::byte*>(values.data() + at), static_cast<Bytes>(count * 8),
                   8, std::endian::big);
      at += count;
    }
    begin += layout_.elements() * part.width * 8;
  }
  return {};
}

}  // namespace

Result<GatheredCoordinates> gather_coordinates(comm::Line& line,
                                               const std::function<comm::Verdict(comm::Vote)>& agree,
                                               node::Budget& budget, const std::string& call,
                                               const layout::Layout& layout, const GivenCoordinates& given) {
  Gathering gathering(line.rank(), budget, layout, given);
  const Status mine = guarded([&] { return gathering.prepare(); });
  TR_TRY(agree({mine.in(call), call, {}}).status);
  Status placed;
  for (Index begin = 0; begin < layout.elements(); begin += gathering.in_portion()) {
    std::map<int, ByteVector> messages;
    Status packed = guarded([&]() -> Status {
      ByteVector own = gathering.portion(begin, std::min(begin + gathering.in_portion(), layout.elements()));
      if (!own.empty()) messages.emplace(0, std::move(own));
      return {};
    });
    const Result<std::map<int, ByteVector>> received =
        line.exchange(std::move(messages), {packed.in(call), cat(call, ": coordinates"), {}});
    TR_TRY(received.status());
    for (const auto& [rank, bytes] : *received) {
      if (placed.is_ok()) placed = guarded([&] { return gathering.place(bytes); });
    }
  }
  comm::Vote vote{placed.in(call), call, {}};
  if (line.rank() == 0) {
    codec::Coordinates& whole = gathering.whole_;
    whole.checksum = checksum(whole.values);
    Packer out;
    out.put(whole.checksum);
    vote.contribution = out.take();
  }
  const comm::Verdict verdict = agree(std::move(vote));
  TR_TRY(verdict.status);
  gathering.whole_.checksum = Unpacker(verdict.contributions[0]).get<std::uint64_t>();
  return GatheredCoordinates{std::make_shared<const codec::Coordinates>(std::move(gathering.whole_)),
                             std::move(gathering.kept_)};
}

}  // namespace tailrace::arrays
