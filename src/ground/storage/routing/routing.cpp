// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/routing/routing.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "ground/storage/paths.hpp"

namespace tailrace::storage {

namespace {

/// The target of one route, which is made when it is needed, and tried again after a failure.
class Lazy {
 public:
  explicit Lazy(Route route) : route_(std::move(route)) {}
  [[nodiscard]] const std::string& prefix() const { return route_.prefix; }
  Result<Target*> get() {
    const std::lock_guard guard(mutex_);
    if (!made_ || !made_->is_ok()) made_ = route_.make();  // a service may be there by now
    TR_TRY(made_->status().in(route_.prefix));
    return (**made_).get();
  }

 private:
  const Route route_;
  std::mutex mutex_;
  std::optional<Result<std::shared_ptr<Target>>> made_;
};

class RoutingTarget final : public Target {
 public:
  RoutingTarget(std::shared_ptr<Target> usual, std::vector<Route> routes) : usual_(std::move(usual)) {
    for (Route& route : routes) routes_.push_back(std::make_unique<Lazy>(std::move(route)));
  }

  using Target::open;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override {
    return at(path, [&](Target& target) { return target.open(path, mode, permissions); });
  }
  Status rename(const std::string& from, const std::string& to) override {
    TR_TRY(check_one_directory(from, to));
    return at(from, [&](Target& target) { return target.rename(from, to); });
  }
  Status remove(const std::string& path) override {
    return at(path, [&](Target& target) { return target.remove(path); });
  }
  Status check_removable(const std::string& path) override {
    return at(path, [&](Target& target) { return target.check_removable(path); });
  }
  Status remove_directory(const std::string& path) override {
    return at(path, [&](Target& target) { return target.remove_directory(path); });
  }
  Status copy(const std::string& from, Bytes size, const std::string& to) override {
    return at(from, [&](Target& source) {
      return at(to, [&](Target& target) {
        return &source == &target ? target.copy(from, size, to) : Target::copy(from, size, to);
      });
    });
  }
  Result<bool> exists(const std::string& path) override {
    return at(path, [&](Target& target) { return target.exists(path); });
  }
  Result<Kind> kind_of(const std::string& path) override {
    return at(path, [&](Target& target) { return target.kind_of(path); });
  }
  Result<Identity> identity_of(const std::string& path) override {
    return at(path, [&](Target& target) { return target.identity_of(path); });
  }
  std::string behind_links(const std::string& path) override {
    const Result<Target*> target = target_of(path);
    return target.is_ok() ? (*target)->behind_links(path) : path;
  }
  Result<bool> is_link(const std::string& path) override {
    return at(path, [&](Target& target) { return target.is_link(path); });
  }
  std::optional<std::string> system_name(const std::string& path) override {
    const Result<Target*> target = target_of(path);
    return target.is_ok() ? (*target)->system_name(path) : std::nullopt;
  }
  Status count_write(const std::string& path, Bytes size) override {
    return at(path, [&](Target& target) { return target.count_write(path, size); });
  }
  Status make_directories(const std::string& path) override {
    return at(path, [&](Target& target) { return target.make_directories(path); });
  }
  Status sync_directory_of(const std::string& path) override {
    return at(path, [&](Target& target) { return target.sync_directory_of(path); });
  }
  Status sync_files(std::span<File* const> files) override { return usual_->sync_files(files); }
  Status sync_directories_of(std::span<const std::string> paths) override {
    const auto is_usual = [&](const std::string& path) { return route_of(path) == nullptr; };
    return std::ranges::all_of(paths, is_usual) ? usual_->sync_directories_of(paths)
                                                : Target::sync_directories_of(paths);
  }
  Result<Space> space(const std::string& path) override {
    return at(path, [&](Target& target) { return target.space(path); });
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return at(directory, [&](Target& target) { return target.list(directory); });
  }
  Result<std::shared_ptr<void>> lock(const std::string& path) override {
    return at(path, [&](Target& target) { return target.lock(path); });
  }
  Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) override {
    return at(path, [&](Target& target) { return target.share_lock(path, std::move(own)); });
  }

 private:
  [[nodiscard]] Lazy* route_of(const std::string& path) const {
    for (const std::unique_ptr<Lazy>& route : routes_) {
      if (path.starts_with(route->prefix())) return route.get();
    }
    return nullptr;
  }
  [[nodiscard]] Result<Target*> target_of(const std::string& path) const {
    Lazy* const route = route_of(path);
    return route == nullptr ? Result<Target*>(usual_.get()) : route->get();
  }
  /// Returns what `call` returns for the target of `path`, or the error of making that.
  template <typename Call>
  auto at(const std::string& path, Call&& call) -> decltype(call(std::declval<Target&>())) {
    const Result<Target*> target = target_of(path);
    TR_TRY(target.status());
    return call(**target);
  }

  const std::shared_ptr<Target> usual_;
  std::vector<std::unique_ptr<Lazy>> routes_;
};

}  // namespace

std::shared_ptr<Target> routing_target(std::shared_ptr<Target> usual, std::vector<Route> routes) {
  return std::make_shared<RoutingTarget>(std::move(usual), std::move(routes));
}

}  // namespace tailrace::storage
