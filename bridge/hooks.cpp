#include "hooks.hpp"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <map>
#include <mutex>

#include "generator.hpp"
#include "guard.hpp"
#include "status.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

// Host memory that transfers may read at any time. On the software device that is any memory;
// the ranges are kept so that is_pinned() tells the truth.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void *data = c10::GetCPUAllocator()->raw_allocate(bytes);
    if (data) {
      std::lock_guard<std::mutex> lock(mutex_);
      ranges_[reinterpret_cast<uintptr_t>(data)] = bytes;
    }
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void *to, const void *from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool owns(const void *data) const {
    auto address = reinterpret_cast<uintptr_t>(data);
    std::lock_guard<std::mutex> lock(mutex_);
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return false;
    auto [begin, size] = *std::prev(after);
    return address < begin + std::max<size_t>(size, 1);
  }

 private:
  static void release(void *data);
  mutable std::mutex mutex_;
  std::map<uintptr_t, size_t> ranges_;
};

// Never destroyed: pinned tensors may outlive static destruction.
PinnedAllocator &pinned() {
  static auto *allocator = new PinnedAllocator;
  return *allocator;
}

void PinnedAllocator::release(void *data) {
  {
    std::lock_guard<std::mutex> lock(pinned().mutex_);
    pinned().ranges_.erase(reinterpret_cast<uintptr_t>(data));
  }
  c10::GetCPUAllocator()->raw_deallocate(data);
}

class TpuHooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return !status_in_bad_fork() && device_count() > 0; }
  void init() const override {
    status_check_fork();
    TT_CALL(tt_eager_start());
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return tt_eager_is_started(); }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    c10::DeviceIndex before = current_device();
    if (device >= 0) set_current_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }

  const at::Generator &getDefaultGenerator(c10::DeviceIndex device) const override {
    return generator_default(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return generator_new(device);
  }
  at::Device getDeviceFromPtr(void *data) const override {
    tt_storage_t *storage = tt_storage_find(data);
    TORCH_CHECK(storage, "tpu: this address belongs to no tpu storage");
    return {kTpu, static_cast<c10::DeviceIndex>(tt_storage_device(storage))};
  }
  bool isPinnedPtr(const void *data) const override { return pinned().owns(data); }
  c10::Allocator *getPinnedMemoryAllocator() const override { return &pinned(); }

  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
    c10::StorageImpl *impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    tt_storage_t *ours = storage_of(impl);
    TT_CALL(tt_storage_resize(ours, bytes));
    tt_storage_retain(ours);
    impl->set_data_ptr_noswap(storage_data_ptr(ours));
    impl->set_nbytes(bytes);
  }
};

}  // namespace

void hooks_register() {
  static TpuHooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
}

}  // namespace tt
