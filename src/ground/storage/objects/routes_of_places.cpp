// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/text.hpp"
#include "ground/storage/objects/object_files.hpp"
#include "ground/storage/objects/places.hpp"
#include "ground/storage/routing/routing.hpp"

namespace tailrace::storage {

namespace {

/// Makes the target of the names of each kind of places that a service keeps.
template <typename Make>
std::shared_ptr<Target> routed_to_places(std::shared_ptr<Target> below, const Make& make) {
  std::vector<Route> routes;
  for (const PlaceKind* const kind : place_kinds()) {
    if (kind->service) routes.push_back({std::string(kind->prefix), [make, kind] { return make(*kind); }});
  }
  return routes.empty() ? below : routing_target(std::move(below), std::move(routes));
}

}  // namespace

std::shared_ptr<Target> with_object_files(std::shared_ptr<Target> below) {
  return routed_to_places(std::move(below), [](const PlaceKind& kind) -> Result<std::shared_ptr<Target>> {
    const Result<std::shared_ptr<ObjectService>> service = service_of(kind);
    TR_TRY(service.status());
    return std::shared_ptr<Target>(std::make_shared<ObjectFiles>(*service, kind.name));
  });
}

std::shared_ptr<Target> without_object_files(std::shared_ptr<Target> below) {
  return routed_to_places(std::move(below), [](const PlaceKind& kind) -> Result<std::shared_ptr<Target>> {
    return Status(Code::unsupported, cat("names that begin so lead to whole objects ('", kind.name,
                                         "'), of which only stores are made; a checkpoint or another file "
                                         "needs a name in a file system"));
  });
}

}  // namespace tailrace::storage
