// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "eccodes_decoding.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "clocks.hpp"
#include "give_up.hpp"

namespace bench {

double on_threads(int threads, std::size_t records,
                  const std::function<void(int thread, std::size_t record)>& work) {
  const double begin = wall();
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      for (auto record = static_cast<std::size_t>(thread); record < records;
           record += static_cast<std::size_t>(threads))
        work(thread, record);
    });
  }
  for (std::thread& each : all) each.join();
  return wall() - begin;
}

EccodesDecoding::EccodesDecoding(const Eccodes& library, const std::string& path, std::size_t values,
                                 int threads)
    : library_(library), rooms_(static_cast<std::size_t>(threads)) {
  for (Room& room : rooms_) room.values.resize(values);
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // The last eight of the first sixteen octets are the length of the message.
  unsigned char begin[16];
  for (off_t at = 0; ::pread(file_, begin, sizeof begin, at) == sizeof begin;) {
    std::size_t length = 0;
    for (int i = 8; i < 16; ++i) length = length << 8 | begin[i];
    if (length < sizeof begin) break;
    places_.emplace_back(at, length);
    at += static_cast<off_t>(length);
  }
  if (places_.empty()) give_up(path.c_str(), "has no messages");
}

EccodesDecoding::~EccodesDecoding() {
  if (file_ >= 0) ::close(file_);
}

void EccodesDecoding::decode(std::pair<off_t, std::size_t> place, Room& room) const {
  room.message.resize(place.second);
  if (::pread(file_, room.message.data(), place.second, place.first) != static_cast<ssize_t>(place.second))
    give_up("pread", "short");
  codes_handle* const handle = library_.new_from_message(nullptr, room.message.data(), place.second);
  if (handle == nullptr) give_up("ecCodes", "reads no message");
  std::size_t count = room.values.size();
  const int error = library_.get_double_array(handle, "values", room.values.data(), &count);
  if (error != CODES_SUCCESS) give_up("values", library_.error_message(error));
  library_.free(handle);
}

double EccodesDecoding::run() {
  return on_threads(static_cast<int>(rooms_.size()), places_.size(), [&](int thread, std::size_t record) {
    decode(places_[record], rooms_[static_cast<std::size_t>(thread)]);
  });
}

}  // namespace bench
