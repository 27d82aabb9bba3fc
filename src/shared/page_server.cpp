// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "shared/page_server.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "shared/far_elements.hpp"
#include "shared/far_pages.hpp"
#include "shared/node_elements.hpp"
#include "shared/node_pages.hpp"
#include "storage/identity.hpp"

namespace tailrace::shared {

namespace {

/// The group that has handed over memory, and the number of its file or array.
struct Owners {
  explicit Owners(Unpacker& in)
      : line(in.get<comm::LineNumber>()), epoch(in.get<std::uint64_t>()), ranks(in.get_list<int>()) {}
  [[nodiscard]] exchange::Requests::Place place() const {
    return {line, std::make_shared<const comm::Members>(ranks)};
  }

  comm::LineNumber line;
  std::uint64_t epoch;
  std::vector<int> ranks;  // of the transport
};

/// The memory of a node that a server needs to work for its ranks.
struct ServerPlace {
  exchange::RequestDesk& desk;
  executor::Threads& threads;
  node::Budget& budget;
};

class ServedElements final : public node::MemoryTaker::Work {
 public:
  ServedElements(const ServerPlace& place, const Owners& owners, const NodeElements::Plan& plan,
                 std::unique_ptr<node::NodeMemory> memory)
      : elements_(
            NodeElements::attach(place.desk.board().transport(), plan, place.budget, std::move(memory))),
        far_(place.desk, owners.place(), owners.epoch, place.threads,
             [this](shared::Work work, const Named& named, std::span<const std::byte> values,
                    ByteVector& answer) { return work_on(*elements_, work, named, values, answer); }) {}
  std::optional<ByteVector> end() override { return Packer().put(Bytes{0}).take(); }

 private:
  std::unique_ptr<NodeElements> elements_;
  FarElements far_;
};

/// Pages of a file. The server reads the file and never writes to it: what is kept for a crash belongs to the
/// compute ranks. If no page can make room unless it is stored, they are asked to do that, and the request
/// waits.
class ServedPages final : public node::MemoryTaker::Work {
 public:
  ServedPages(const ServerPlace& place, const Owners& owners, std::unique_ptr<storage::File> file,
              const std::vector<int>& lowest)
      : place_(place), owners_(owners), file_(std::move(file)), ranks_(lowest) {}
  ~ServedPages() override {
    far_.reset();
    if (file_ != nullptr) (void)file_->close();  // nothing was written
  }
  Status begin(Bytes page, Bytes memory, int first, std::unique_ptr<node::NodeMemory> taken);
  std::optional<ByteVector> end() override {
    far_.reset();
    const Bytes drawn = pages_->end_serving();
    return Packer().put(drawn).take();
  }

 private:
  [[nodiscard]] Disk disk();
  [[nodiscard]] Served served();

  const ServerPlace place_;
  const Owners owners_;
  std::unique_ptr<storage::File> file_;
  const exchange::NodeRanks ranks_;
  Bytes page_ = 0;
  std::unique_ptr<NodePages> pages_;
  std::unique_ptr<FarPages> far_;
};

Status ServedPages::begin(Bytes page, Bytes memory, int first, std::unique_ptr<node::NodeMemory> taken) {
  page_ = page;
  Result<std::unique_ptr<NodePages>> pages = NodePages::attach(
      place_.desk.board().transport(), {page, memory, std::make_shared<PageDeal>(page, ranks_)},
      ranks_.seat(first).ranks, place_.budget, disk(), std::move(taken));
  TR_TRY(pages.status());
  pages_ = std::move(*pages);
  far_ = std::make_unique<FarPages>(place_.desk, owners_.place(), owners_.epoch, place_.threads, served());
  return {};
}

Disk ServedPages::disk() {
  Disk disk;
  disk.load = [this](std::span<std::byte> bytes, Bytes offset) { return load_page(*file_, bytes, offset); };
  return disk;
}

Served ServedPages::served() {
  const auto user = [](bool waits) { return waits ? NodePages::User::service : NodePages::User::desk; };
  Served served;
  served.size = [this] { return pages_->size(); };
  served.raise_size = [this](Bytes size) { pages_->raise_size(size); };
  served.add_to_size = [this](Bytes bytes) { return pages_->add_to_size(bytes); };
  served.is_here = [this](Bytes offset) { return pages_->has(offset / page_); };
  served.read = [this, user](Bytes offset, std::span<std::byte> into, bool waits) {
    return pages_->read(offset / page_, offset % page_, into, user(waits));
  };
  served.write = [this, user](Bytes offset, std::span<const std::byte> bytes, bool waits) {
    pages_->raise_size(offset + std::ssize(bytes));
    return pages_->write(offset / page_, offset % page_, bytes, user(waits));
  };
  served.is_to_wait = NodePages::lacks_room;
  return served;
}

}  // namespace

Result<std::unique_ptr<PageServer>> PageServer::create(session::Session& session) {
  Result<std::unique_ptr<executor::Threads>> threads =
      executor::Threads::create({0, session.settings().io_threads});
  TR_TRY(threads.status());
  return std::unique_ptr<PageServer>(new PageServer(session, std::move(*threads)));
}

PageServer::PageServer(session::Session& session, std::unique_ptr<executor::Threads> threads)
    : session_(session), threads_(std::move(threads)), desk_(session.board(), false) {
  using node::Handed;
  node::MemoryTaker& taker = session.serving().taker();
  taker.on(Handed::elements, [this](int, std::unique_ptr<node::NodeMemory> memory, Unpacker description) {
    return serve_elements(std::move(memory), description);
  });
  taker.on(Handed::pages, [this](int, std::unique_ptr<node::NodeMemory> memory, Unpacker description) {
    return serve_pages(std::move(memory), description);
  });
  session.serving().park_at_most([this, &taker] {
    return taker.has_any() ? desk_.next_look() : std::chrono::nanoseconds(session::Parking::longest);
  });
}

PageServer::~PageServer() { session_.serving().taker().drop_all(); }

Result<std::unique_ptr<PageServer::Work>> PageServer::serve_elements(std::unique_ptr<node::NodeMemory> memory,
                                                                     Unpacker in) {
  const Owners owners(in);
  Unpacker more(in.get_bytes());
  const auto plan = more.get<NodeElements::Plan>();
  if (!more.ok() || plan.page <= 0 || plan.pages > memory->size() / plan.page)
    return Status(Code::argument, "the memory of a global array was handed over with another one's plan");
  return std::unique_ptr<Work>(std::make_unique<ServedElements>(
      ServerPlace{desk_, *threads_, session_.memory().budget()}, owners, plan, std::move(memory)));
}

Result<std::unique_ptr<PageServer::Work>> PageServer::serve_pages(std::unique_ptr<node::NodeMemory> memory,
                                                                  Unpacker in) {
  const Owners owners(in);
  Unpacker more(in.get_bytes());
  const auto page = more.get<Bytes>();
  const auto most = more.get<Bytes>();
  const auto first = more.get<int>();
  const std::vector<int> lowest = more.get_list<int>();
  const auto number = more.get<storage::FileNumber>();
  const std::string path = more.get_text();
  if (!more.ok() || first < 0 || first >= std::ssize(lowest))
    return Status(Code::argument, "pages of a shared file were handed over without their ranks");
  Result<std::unique_ptr<storage::File>> file = session_.target().open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  if (storage::number_of(path) != number)
    return Status(Code::unsupported,
                  cat(path, " names another file on this server than on its compute ranks"));
  auto work = std::make_unique<ServedPages>(ServerPlace{desk_, *threads_, session_.memory().budget()}, owners,
                                            std::move(*file), lowest);
  TR_TRY(work->begin(page, most, first, std::move(memory)));
  return std::unique_ptr<Work>(std::move(work));
}

}  // namespace tailrace::shared
