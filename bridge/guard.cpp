#include "guard.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdlib>

#include "status.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

thread_local DeviceIndex current = 0;

Stream make_stream(DeviceIndex device, int64_t id) {
  return Stream(Stream::UNSAFE, Device(kTpu, device), id);
}

tt_event_t *event_of(void *event) { return static_cast<tt_event_t *>(event); }

class TpuGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kTpu; }
  Device exchangeDevice(Device device) const override {
    Device before = getDevice();
    setDevice(device);
    return before;
  }
  Device getDevice() const override { return Device(kTpu, current); }
  void setDevice(Device device) const override {
    if (device.has_index() && device.index() != current) set_current_device(device.index());
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.has_index()) current = device.index();
  }
  DeviceIndex deviceCount() const noexcept override { return device_count(); }

  Stream getStream(Device device) const override {
    DeviceIndex index = device_index(device);
    return make_stream(index, tt_eager_is_started() ? tt_stream_current(index) : 0);
  }
  Stream getDefaultStream(Device device) const override {
    return make_stream(device_index(device), 0);
  }
  Stream getNewStream(Device device, int) const override {
    status_check_fork();
    int64_t id = 0;
    TT_CALL(tt_stream_create(device_index(device), &id));
    return make_stream(device_index(device), id);
  }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }
  Stream exchangeStream(Stream stream) const override {
    Stream before = getStream(stream.device());
    tt_stream_set_current(stream.device_index(), stream.id());
    return before;
  }
  void *getStreamNativeHandle(const Stream stream) const override {
    return reinterpret_cast<void *>(stream.id());
  }
  bool queryStream(const Stream &stream) const override {
    return tt_stream_query(stream.device_index(), stream.id());
  }
  void synchronizeStream(const Stream &stream) const override {
    status_check_fork();
    TT_CALL(tt_stream_synchronize(stream.device_index(), stream.id()));
  }
  void synchronizeDevice(const DeviceIndex device) const override {
    status_check_fork();
    TT_CALL(tt_eager_synchronize(device < 0 ? current : device));
  }

  void record(void **event, const Stream &stream, const DeviceIndex device,
              const c10::EventFlag) const override {
    status_check_fork();
    TORCH_CHECK(!*event || device == stream.device_index(), "an event of tpu:", int{device},
                " cannot be recorded on a stream of ", stream.device());
    if (!*event) {
      tt_event_t *made = nullptr;
      TT_CALL(tt_event_create(stream.device_index(), &made));
      *event = made;
    }
    TT_CALL(tt_event_record(event_of(*event), stream.id()));
  }
  void block(void *event, const Stream &stream) const override {
    if (event) TT_CALL(tt_event_wait(event_of(event), stream.id()));
  }
  bool queryEvent(void *event) const override { return !event || tt_event_query(event_of(event)); }
  void synchronizeEvent(void *event) const override {
    if (event) TT_CALL(tt_event_synchronize(event_of(event)));
  }
  double elapsedTime(void *start, void *end, const DeviceIndex) const override {
    TORCH_CHECK(start && end, "Both events must be recorded before calculating elapsed time.");
    double ms = 0;
    TT_CALL(tt_event_elapsed_ms(event_of(start), event_of(end), &ms));
    return ms;
  }
  void destroyEvent(void *event, const DeviceIndex) const noexcept override {
    if (event) tt_event_destroy(event_of(event));
  }
};

}  // namespace

DeviceIndex current_device() noexcept { return current; }

void set_current_device(DeviceIndex index) {
  int count = device_count();
  TORCH_CHECK(index >= 0 && index < count, "invalid device ordinal: tpu:", int{index}, " of ",
              count, " device(s)");
  current = index;
}

DeviceIndex device_count() noexcept {
  int count = 0;
  tt_status_t status = tt_eager_device_count(&count);
  if (status != TT_OK_STATUS) {
    tt_status_release(status);
    return 0;
  }
  return static_cast<DeviceIndex>(count);
}

void guard_register() {
  static TpuGuard guard;
  static c10::impl::DeviceGuardImplRegistrar registrar(kTpu, &guard);
}

}  // namespace tt
