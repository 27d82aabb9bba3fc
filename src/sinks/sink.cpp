// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sinks/sink.hpp"

namespace tailrace::sinks {

namespace {

Status commit_one(ByteSink& sink) { return sink.sync(); }
Status commit_one(ObjectSink& sink) { return sink.commit(); }
Status commit_one(ContainerSink& sink) { return sink.commit(); }

}  // namespace

Status commit(Sink& sink) {
  return std::visit([](auto& held) { return commit_one(*held); }, sink);
}

}  // namespace tailrace::sinks
