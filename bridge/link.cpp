#include "link.hpp"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/utils/pybind.h>

#include <list>
#include <mutex>
#include <set>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace {

using at::Tensor;
using c10::intrusive_ptr;
using std::vector;

// A c10d backend for CPU tensors (gloo) as the link between hosts.
class Link {
 public:
  explicit Link(intrusive_ptr<c10d::Backend> backend) : backend(std::move(backend)) {}
  // Makes receives fail, or sends as well: those under way and later ones.
  void stop(bool sends) {
    std::lock_guard<std::mutex> lock(mutex_);
    stops_receives_ = true;
    stops_sends_ = stops_sends_ || sends;
    for (const auto *part : parts_) {
      if (part->receives || sends) part->work->abort();
    }
  }

  // One send or receive, from its start on.
  class Part {
   public:
    template <class F>
    Part(Link &link, uint32_t rank, bool receives, F start)
        : rank(rank), receives(receives), link_(link) {
      std::lock_guard<std::mutex> lock(link.mutex_);
      TORCH_CHECK(!(receives ? link.stops_receives_ : link.stops_sends_), kStopped);
      work = start();
      link.parts_.insert(this);
    }
    ~Part() {
      std::lock_guard<std::mutex> lock(link_.mutex_);
      link_.parts_.erase(this);
    }
    void wait(double timeout_s) {
      auto limit = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1e3));
      TORCH_CHECK(work->wait(limit), kStopped);
    }

    const uint32_t rank;
    const bool receives;
    intrusive_ptr<c10d::Work> work;

   private:
    static constexpr const char *kStopped = "the process group was ended";
    Link &link_;
  };

  const intrusive_ptr<c10d::Backend> backend;

 private:
  std::mutex mutex_;  // guards what follows
  std::set<const Part *> parts_;
  bool stops_receives_ = false, stops_sends_ = false;
};

Tensor bytes_of(const tt_part_t &part) {
  return at::from_blob(part.data, {static_cast<int64_t>(part.bytes)}, at::kByte);
}
tt_status_t link_exchange(void *context, const tt_part_t *sends, uint32_t send_count,
                          const tt_part_t *receives, uint32_t receive_count, uint32_t tag,
                          double timeout_s) {
  auto &link = *static_cast<Link *>(context);
  std::list<Link::Part> parts;
  uint32_t rank = 0;
  try {
    auto start = [&](const tt_part_t &part, bool send) {
      rank = part.rank;
      vector<Tensor> tensors{bytes_of(part)};
      auto peer = static_cast<int>(part.rank), number = static_cast<int>(tag);
      parts.emplace_back(link, rank, !send, [&] {
        return send ? link.backend->send(tensors, peer, number)
                    : link.backend->recv(tensors, peer, number);
      });
    };
    for (uint32_t i = 0; i < receive_count; i++) start(receives[i], false);
    for (uint32_t i = 0; i < send_count; i++) start(sends[i], true);
    for (auto &part : parts) {
      rank = part.rank;
      part.wait(timeout_s);
    }
    return TT_OK_STATUS;
  } catch (const std::exception &e) {
    return TT_ERROR(UNAVAILABLE, "rank %u (of another host or beyond one): %s", rank, e.what());
  }
}
tt_status_t link_receive_any(void *context, void *data, size_t bytes, uint32_t tag,
                             double timeout_s, uint32_t *out_from) {
  auto &link = *static_cast<Link *>(context);
  try {
    vector<Tensor> tensors{bytes_of({0, data, bytes})};
    Link::Part part(link, 0, true,
                    [&] { return link.backend->recvAnysource(tensors, static_cast<int>(tag)); });
    part.wait(timeout_s);
    *out_from = static_cast<uint32_t>(part.work->sourceRank());
    return TT_OK_STATUS;
  } catch (const std::exception &e) {
    return TT_ERROR(UNAVAILABLE, "nothing came: %s", e.what());
  }
}
void link_abort(void *context) { static_cast<Link *>(context)->stop(true); }
void link_stop_receiving(void *context) { static_cast<Link *>(context)->stop(false); }
void link_close(void *context) { delete static_cast<Link *>(context); }

}  // namespace

tt_status_t tt::link_create(void *context, const char *name, tt_link_t *out_link) {
  try {
    py::gil_scoped_acquire gil;
    auto made = (*static_cast<py::object *>(context))(name);
    *out_link = {new Link{made.cast<intrusive_ptr<c10d::Backend>>()},
                 link_exchange,
                 link_receive_any,
                 link_abort,
                 link_stop_receiving,
                 link_close};
    return TT_OK_STATUS;
  } catch (const std::exception &e) {
    return TT_ERROR(UNAVAILABLE, "%s", e.what());
  }
}
