#include "allocator.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include "library.hpp"
#include "status.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

// Memory is the engine's: an allocation is a storage, whose address is reserved and never read
// here.
class TpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    status_check_fork();
    tt_storage_t *storage = nullptr;
    TT_CALL(tt_storage_create(current_device(), bytes, &storage));
    library_install_once();
    return storage_data_ptr(storage);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void *, const void *, size_t) const override {
    TORCH_CHECK(false, "internal: raw copies between tpu addresses are not possible");
  }

  bool initialized() override { return tt_eager_is_started(); }
  void emptyCache(c10::MempoolId_t) override {
    tt_client_t *client = tt_eager_client();
    for (uint32_t i = 0; client && i < tt_client_device_count(client); ++i)
      tt_client_trim(client, i);
  }
  void recordStream(const c10::DataPtr &, c10::Stream) override {}
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    if (tt_client_t *client = tt_eager_client()) {
      tt_client_reset_peak(client, static_cast<uint32_t>(device));
    }
  }

  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    tt_memory_stats_t s = memory_stats(device);
    DeviceStats out;
    auto set = [](auto &stats, int64_t current, int64_t peak, int64_t made, int64_t freed) {
      auto &all = stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
      all.current = current;
      all.peak = peak;
      all.allocated = made;
      all.freed = freed;
    };
    set(out.allocation, s.live_allocations, s.live_allocations, s.allocations, s.frees);
    set(out.active, s.live_allocations, s.live_allocations, s.allocations, s.frees);
    for (auto *bytes : {&out.allocated_bytes, &out.active_bytes, &out.requested_bytes}) {
      set(*bytes, s.bytes_in_use, s.peak_bytes_in_use, 0, 0);
    }
    set(out.reserved_bytes, s.bytes_reserved, s.bytes_reserved, 0, 0);
    out.num_device_alloc = s.allocations;
    out.num_device_free = s.frees;
    return out;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    TT_CALL(tt_eager_start());
    tt_memory_stats_t s = memory_stats(device);
    int64_t free = std::max<int64_t>(s.bytes_limit - s.bytes_in_use, 0);
    return {static_cast<size_t>(free), static_cast<size_t>(s.bytes_limit)};
  }
};

TpuAllocator allocator;

}  // namespace

tt_memory_stats_t memory_stats(c10::DeviceIndex device) {
  tt_memory_stats_t stats{};
  if (tt_client_t *client = tt_eager_client()) {
    TT_CALL(tt_client_memory_stats(client, static_cast<uint32_t>(device), &stats));
  }
  return stats;
}

c10::Allocator *device_allocator() { return &allocator; }

void allocator_register() { c10::SetAllocator(kTpu, &allocator); }

}  // namespace tt
