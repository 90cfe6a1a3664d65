#include "generator.hpp"

#include <ATen/EmptyTensor.h>
#include <c10/core/GeneratorImpl.h>

#include <cstring>
#include <mutex>

#include "guard.hpp"
#include "status.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

// The state tensor: seed and offset, eight bytes each.
constexpr int64_t kStateBytes = 16;

class TpuGenerator final : public c10::GeneratorImpl {
 public:
  // `owned` is released with this object; a default generator belongs to the engine.
  TpuGenerator(c10::DeviceIndex device, tt_generator_t *handle, bool owned)
      : GeneratorImpl(c10::Device(kTpu, device),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        handle_(handle),
        owned_(owned) {}
  ~TpuGenerator() override {
    if (owned_) tt_generator_release(handle_);
  }

  tt_generator_t *handle() const { return handle_; }
  static c10::DeviceType device_type() { return kTpu; }

  void set_current_seed(uint64_t seed) override { tt_generator_set_state(handle_, seed, 0); }
  void set_offset(uint64_t offset) override {
    tt_generator_set_state(handle_, current_seed(), offset);
  }
  uint64_t get_offset() const override { return state().second; }
  uint64_t current_seed() const override { return state().first; }
  uint64_t seed() override {
    uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }

  void set_state(const c10::TensorImpl &tensor) override {
    TORCH_CHECK_TYPE(tensor.device_type() == c10::DeviceType::CPU &&
                         tensor.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
                     "RNG state must be a torch.ByteTensor");
    TORCH_CHECK(tensor.numel() == kStateBytes && tensor.is_contiguous(), "RNG state is wrong size");
    uint64_t words[2];
    std::memcpy(words, tensor.data(), sizeof(words));
    tt_generator_set_state(handle_, words[0], words[1]);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto tensor = at::detail::empty_cpu({kStateBytes}, c10::ScalarType::Byte);
    auto [seed, offset] = state();
    uint64_t words[2] = {seed, offset};
    std::memcpy(tensor.unsafeGetTensorImpl()->mutable_data(), words, sizeof(words));
    return tensor.getIntrusivePtr();
  }

 private:
  std::pair<uint64_t, uint64_t> state() const {
    uint64_t seed = 0, offset = 0;
    tt_generator_state(handle_, &seed, &offset);
    return {seed, offset};
  }
  TpuGenerator *clone_impl() const override {
    tt_generator_t *copy = nullptr;
    TT_CALL(tt_generator_create(device_.index(), &copy));
    auto [seed, offset] = state();
    tt_generator_set_state(copy, seed, offset);
    return new TpuGenerator(device_.index(), copy, /*owned=*/true);
  }

  tt_generator_t *handle_;
  bool owned_;
};

}  // namespace

tt_generator_t *generator_handle(const at::Generator &generator) {
  TORCH_CHECK(generator.device().type() == kTpu,
              "Expected a 'tpu' device type for generator but found '", generator.device().type(),
              "'");
  return static_cast<TpuGenerator *>(generator.unsafeGetGeneratorImpl())->handle();
}

const at::Generator &generator_default(c10::DeviceIndex device) {
  static std::mutex mutex;
  static std::array<at::Generator, 128> generators;
  auto index = static_cast<size_t>(device < 0 ? current_device() : device);
  TORCH_CHECK_INDEX(index < generators.size(), "tpu: no generator for device ", index);
  std::lock_guard<std::mutex> lock(mutex);
  if (!generators[index].defined()) {
    auto i = static_cast<c10::DeviceIndex>(index);
    generators[index] =
        at::make_generator<TpuGenerator>(i, tt_generator_default(i), /*owned=*/false);
  }
  return generators[index];
}

at::Generator generator_new(c10::DeviceIndex device) {
  c10::DeviceIndex index = device < 0 ? current_device() : device;
  TORCH_CHECK(index < device_count(), "tpu: there is no device ", static_cast<int>(index),
              " for a generator");
  tt_generator_t *handle = nullptr;
  TT_CALL(tt_generator_create(index, &handle));
  auto generator = at::make_generator<TpuGenerator>(index, handle, /*owned=*/true);
  generator.set_current_seed(c10::default_rng_seed_val);
  return generator;
}

}  // namespace tt
