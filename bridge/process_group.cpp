#include "process_group.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "dist/process_group.h"
#include "link.hpp"
#include "status.hpp"
#include "tensor.hpp"

namespace {

using at::Tensor;
using c10::intrusive_ptr;
using std::vector;
using Works = vector<tt_work_t *>;

// Runs Python's signal handlers, in the thread that Ctrl-C is for, and keeps what they raise.
tt_status_t run_signal_handlers() {
  if (gettid() != getpid()) return TT_OK_STATUS;
  py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return TT_OK_STATUS;
  return tt::status_from_exception(std::make_exception_ptr(py::error_already_set()));
}

// Whether somebody stopped waiting for a group's work because of a signal.
using Interrupted = std::shared_ptr<std::atomic<bool>>;

// One job, or the jobs between startCoalescing and endCoalescing.
class TpuWork : public c10d::Work {
 public:
  // `title`: the profiler's event, from now to the end that somebody waits for; NULL: none.
  TpuWork(int rank, c10d::OpType op, Works works, vector<Tensor> outputs, Interrupted interrupted,
          const char *title = nullptr, const vector<Tensor> &inputs = {})
      : Work(rank, op, title, inputs),
        works_(std::move(works)),
        outputs_(std::move(outputs)),
        interrupted_(std::move(interrupted)) {}
  ~TpuWork() override {
    for (auto *work : works_) tt_work_release(work);
  }

  bool isCompleted() override { return std::all_of(works_.begin(), works_.end(), tt_work_is_done); }
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override {
    for (auto *work : works_) {
      if (!tt_work_is_done(work)) continue;
      try {
        TT_CALL(tt_work_wait(work, 0, nullptr));
      } catch (...) {
        return std::current_exception();
      }
    }
    return nullptr;
  }
  int sourceRank() const override {
    bool received = opType_ == c10d::OpType::RECV || opType_ == c10d::OpType::RECVANYSOURCE;
    return received ? static_cast<int>(tt_work_source(works_.front())) : Work::sourceRank();
  }
  vector<Tensor> result() override { return outputs_; }
  void synchronize() override { wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override {
    try {
      for (auto *work : works_)
        TT_CALL(
            tt_work_wait(work, static_cast<double>(timeout.count()) * 1e-3, run_signal_handlers));
    } catch (const py::error_already_set &) {
      *interrupted_ = true;
      throw;
    }
    if (auto end = std::exchange(recordFunctionEndCallback_, nullptr)) end();
    return true;
  }
  void abort() override {
    TORCH_CHECK(false, "tpu_dist: abort the process group, not one operation");
  }

  intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (future_) return future_;
    auto type = c10::ListType::create(c10::TensorType::get());
    future_ = c10::make_intrusive<c10::ivalue::Future>(type);
    auto *pending = new Pending{future_, outputs_, works_.size(),
                                std::exchange(recordFunctionEndCallback_, nullptr)};
    if (works_.empty()) delete pending, future_->markCompleted(outputs_);
    for (auto *work : works_) tt_work_on_done(work, on_done, pending);
    return future_;
  }

 private:
  // What a future needs after this object may be gone; the last job's end disposes of it.
  struct Pending {
    intrusive_ptr<c10::ivalue::Future> future;
    vector<Tensor> outputs;
    std::atomic<size_t> left;
    std::function<void()> end_event;
  };
  static void on_done(void *context, tt_status_t status) {
    auto *pending = static_cast<Pending *>(context);
    if (status && !pending->future->completed()) {
      try {
        tt::status_throw(tt_status_clone(status));
      } catch (...) {
        pending->future->setErrorIfNeeded(std::current_exception());
      }
    }
    if (--pending->left) return;
    if (pending->end_event) pending->end_event();
    if (!pending->future->completed()) pending->future->markCompleted(std::move(pending->outputs));
    delete pending;
  }

  Works works_;
  vector<Tensor> outputs_;
  Interrupted interrupted_;
  intrusive_ptr<c10::ivalue::Future> future_;  // a job calls back once
};

// What the profiler calls a job.
const char *event_title(tt_job_kind_t kind) {
  switch (kind) {
    case TT_JOB_BARRIER:
      return "tpu_dist:barrier";
    case TT_JOB_ALL_REDUCE:
      return "tpu_dist:all_reduce";
    case TT_JOB_REDUCE:
      return "tpu_dist:reduce";
    case TT_JOB_BROADCAST:
      return "tpu_dist:broadcast";
    case TT_JOB_ALL_GATHER:
      return "tpu_dist:all_gather";
    case TT_JOB_REDUCE_SCATTER:
      return "tpu_dist:reduce_scatter";
    case TT_JOB_ALL_TO_ALL:
      return "tpu_dist:all_to_all";
    case TT_JOB_GATHER:
      return "tpu_dist:gather";
    case TT_JOB_SCATTER:
      return "tpu_dist:scatter";
    case TT_JOB_SEND:
      return "tpu_dist:send";
    case TT_JOB_RECEIVE:
      return "tpu_dist:recv";
    case TT_JOB_RECEIVE_ANY:
      return "tpu_dist:recvAnySource";
  }
  return nullptr;
}

// The c10d store as C sees it.
template <class F>
tt_status_t store_call(void *context, F f) {
  try {
    f(*static_cast<c10d::Store *>(context));
    return TT_OK_STATUS;
  } catch (const std::exception &e) {
    return TT_ERROR(UNAVAILABLE, "tpu_dist: the rendezvous store failed: %s", e.what());
  }
}
tt_status_t store_publish(void *context, const char *key, const void *data, size_t size) {
  const auto *bytes = static_cast<const uint8_t *>(data);
  return store_call(context,
                    [&](c10d::Store &s) { s.set(key, vector<uint8_t>(bytes, bytes + size)); });
}
tt_status_t store_look(void *context, const char *key, void *data, size_t size, bool *out_there) {
  TT_RETURN_IF_ERROR(run_signal_handlers());
  return store_call(context, [&](c10d::Store &s) {
    *out_there = s.check({key});
    if (!*out_there) return;
    auto value = s.get(key);
    TORCH_CHECK(value.size() == size, key, " has ", value.size(), " bytes, not ", size);
    memcpy(data, value.data(), size);
  });
}
tt_status_t store_count(void *context, const char *key, int64_t *out_count) {
  return store_call(context, [&](c10d::Store &s) { *out_count = s.add(key, 1); });
}

tt_reduce_op_t reduce_op(const c10d::ReduceOp &op) {
  static_assert(static_cast<int>(c10d::ReduceOp::BXOR) == TT_REDUCE_BXOR);
  TORCH_CHECK(op.op_ <= c10d::ReduceOp::BXOR, "tpu_dist: unknown reduce op ",
              static_cast<int>(op.op_));
  return static_cast<tt_reduce_op_t>(op.op_);
}

double seconds(std::chrono::milliseconds timeout) {
  return static_cast<double>(timeout.count()) * 1e-3;
}

class TpuDist : public c10d::Backend {
 public:
  // `ranks`: those of an imagined group among `world`; empty: a real one.
  TpuDist(c10d::Store &store, int rank, int size, double timeout_s, const vector<int64_t> &ranks,
          int world, py::object *link)
      : Backend(rank, size) {
    if (!ranks.empty()) {
      TT_CALL(tt_process_group_imagine(ranks.data(), static_cast<uint32_t>(ranks.size()),
                                       static_cast<uint32_t>(world), static_cast<uint32_t>(rank),
                                       &group_));
      return;
    }
    tt_store_t c_store{&store, store_publish, store_look, store_count};
    TT_CALL(tt_process_group_create(&c_store, static_cast<uint32_t>(rank),
                                    static_cast<uint32_t>(size), timeout_s, tt::link_create, link,
                                    &group_));
  }
  ~TpuDist() override { end(group_); }

  const std::string getBackendName() const override { return "tpu_dist"; }
  void setTimeout(std::chrono::milliseconds timeout) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (group_) tt_process_group_set_timeout(group_, seconds(timeout));
  }
  void abort() override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (group_) tt_process_group_abort(group_);
  }
  void shutdown() override {
    std::lock_guard<std::mutex> lock(mutex_);
    end(std::exchange(group_, nullptr));
  }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }

  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override {
    coalescing_ = true;
    coalesced_.clear();
    coalesced_outputs_.clear();
  }
  intrusive_ptr<c10d::Work> endCoalescing() override {
    coalescing_ = false;
    return c10::make_intrusive<TpuWork>(rank_, c10d::OpType::COALESCED, std::move(coalesced_),
                                        std::move(coalesced_outputs_), interrupted_);
  }

  intrusive_ptr<c10d::Work> broadcast(vector<Tensor> &tensors,
                                      const c10d::BroadcastOptions &o) override {
    return submit({TT_JOB_BROADCAST, c10d::OpType::BROADCAST, o.timeout, o.rootRank}, tensors, {},
                  tensors);
  }
  intrusive_ptr<c10d::Work> allreduce(vector<Tensor> &tensors,
                                      const c10d::AllreduceOptions &o) override {
    Call call{TT_JOB_ALL_REDUCE, c10d::OpType::ALLREDUCE, o.timeout};
    call.op = premultiplied(o.reduceOp, tensors, true);
    return submit(call, tensors, {}, tensors);
  }
  intrusive_ptr<c10d::Work> allreduce_coalesced(vector<Tensor> &tensors,
                                                const c10d::AllreduceCoalescedOptions &o) override {
    return allreduce(tensors, o);
  }
  // Done when it returns: how much the ranks have must be known before it can be gathered.
  intrusive_ptr<c10d::Work> allreduce_sparse(vector<Tensor> &tensors,
                                             const c10d::AllreduceOptions &o) override {
    for (auto &t : tensors) t.copy_(sum_of_all(t, o));
    return c10::make_intrusive<TpuWork>(rank_, c10d::OpType::_ALLREDUCE_SPARSE, Works{}, tensors,
                                        interrupted_);
  }
  intrusive_ptr<c10d::Work> reduce(vector<Tensor> &tensors, const c10d::ReduceOptions &o) override {
    Call call{TT_JOB_REDUCE, c10d::OpType::REDUCE, o.timeout, o.rootRank};
    call.op = premultiplied(o.reduceOp, tensors, true);
    return submit(call, tensors, {}, tensors);
  }
  intrusive_ptr<c10d::Work> allgather(vector<vector<Tensor>> &outs, vector<Tensor> &ins,
                                      const c10d::AllgatherOptions &o) override {
    one_a_rank("all_gather", outs.at(0));
    overwrite(outs[0]);
    return submit({TT_JOB_ALL_GATHER, c10d::OpType::ALLGATHER, o.timeout}, ins, outs.at(0),
                  outs.at(0));
  }
  intrusive_ptr<c10d::Work> _allgather_base(Tensor &out, Tensor &in,
                                            const c10d::AllgatherOptions &o) override {
    overwrite({out});
    return submit({TT_JOB_ALL_GATHER, c10d::OpType::_ALLGATHER_BASE, o.timeout}, {in}, {out},
                  {out});
  }
  intrusive_ptr<c10d::Work> allgather_coalesced(vector<vector<Tensor>> &outs, vector<Tensor> &ins,
                                                const c10d::AllgatherOptions &o) override {
    return each(ins.size(), c10d::OpType::ALLGATHER_COALESCED, [&](size_t i) {
      vector<Tensor> in{ins[i]}, out;
      for (auto &list : outs) out.push_back(list.at(i));
      vector<vector<Tensor>> lists{out};
      return allgather(lists, in, o);
    });
  }
  intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(
      vector<Tensor> &outs, vector<Tensor> &ins, const c10d::AllgatherOptions &o) override {
    return each(ins.size(), c10d::OpType::COALESCED,
                [&](size_t i) { return _allgather_base(outs.at(i), ins[i], o); });
  }
  intrusive_ptr<c10d::Work> gather(vector<vector<Tensor>> &outs, vector<Tensor> &ins,
                                   const c10d::GatherOptions &o) override {
    vector<Tensor> out = outs.empty() ? vector<Tensor>{} : outs.at(0);
    if (rank_ == o.rootRank) one_a_rank("gather", out);
    overwrite(out);
    return submit({TT_JOB_GATHER, c10d::OpType::GATHER, o.timeout, o.rootRank}, ins, out, out);
  }
  intrusive_ptr<c10d::Work> scatter(vector<Tensor> &outs, vector<vector<Tensor>> &ins,
                                    const c10d::ScatterOptions &o) override {
    vector<Tensor> in = ins.empty() ? vector<Tensor>{} : ins.at(0);
    if (rank_ == o.rootRank) one_a_rank("scatter", in);
    return submit({TT_JOB_SCATTER, c10d::OpType::SCATTER, o.timeout, o.rootRank}, in, outs, outs);
  }
  intrusive_ptr<c10d::Work> reduce_scatter(vector<Tensor> &outs, vector<vector<Tensor>> &ins,
                                           const c10d::ReduceScatterOptions &o) override {
    Call call{TT_JOB_REDUCE_SCATTER, c10d::OpType::REDUCE_SCATTER, o.timeout};
    vector<Tensor> in = ins.at(0);
    one_a_rank("reduce_scatter", in);
    overwrite(outs);
    call.op = premultiplied(o.reduceOp, in, false);
    return submit(call, in, outs, outs);
  }
  intrusive_ptr<c10d::Work> _reduce_scatter_base(Tensor &out, Tensor &in,
                                                 const c10d::ReduceScatterOptions &o) override {
    Call call{TT_JOB_REDUCE_SCATTER, c10d::OpType::_REDUCE_SCATTER_BASE, o.timeout};
    vector<Tensor> ins{in};
    overwrite({out});
    call.op = premultiplied(o.reduceOp, ins, false);
    return submit(call, ins, {out}, {out});
  }
  intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(
      vector<Tensor> &outs, vector<Tensor> &ins, const c10d::ReduceScatterOptions &o) override {
    return each(ins.size(), c10d::OpType::COALESCED,
                [&](size_t i) { return _reduce_scatter_base(outs.at(i), ins[i], o); });
  }
  intrusive_ptr<c10d::Work> alltoall_base(Tensor &out, Tensor &in, vector<int64_t> &out_splits,
                                          vector<int64_t> &in_splits,
                                          const c10d::AllToAllOptions &o) override {
    Call call{TT_JOB_ALL_TO_ALL, c10d::OpType::ALLTOALL_BASE, o.timeout};
    for (const auto *splits : {&in_splits, &out_splits}) {
      TORCH_CHECK(splits->empty() || splits->size() == static_cast<size_t>(size_),
                  "tpu_dist: all_to_all: Number of tensor splits not equal to group size: ",
                  splits->size(), " splits for ", size_, " ranks");
    }
    call.in_splits = &in_splits;
    call.out_splits = &out_splits;
    return submit(call, {in}, {out}, {out});
  }
  intrusive_ptr<c10d::Work> alltoall(vector<Tensor> &outs, vector<Tensor> &ins,
                                     const c10d::AllToAllOptions &o) override {
    one_a_rank("all_to_all", ins);
    one_a_rank("all_to_all", outs);
    overwrite(outs);
    return submit({TT_JOB_ALL_TO_ALL, c10d::OpType::ALLTOALL, o.timeout}, ins, outs, outs);
  }
  intrusive_ptr<c10d::Work> send(vector<Tensor> &tensors, int to, int tag) override {
    Call call{TT_JOB_SEND, c10d::OpType::SEND, c10d::kUnsetTimeout, to};
    call.tag = static_cast<uint32_t>(tag);
    return submit(call, tensors, {}, tensors);
  }
  intrusive_ptr<c10d::Work> recv(vector<Tensor> &tensors, int from, int tag) override {
    Call call{TT_JOB_RECEIVE, c10d::OpType::RECV, c10d::kUnsetTimeout, from};
    call.tag = static_cast<uint32_t>(tag);
    return submit(call, {}, tensors, tensors);
  }
  intrusive_ptr<c10d::Work> recvAnysource(vector<Tensor> &tensors, int tag) override {
    Call call{TT_JOB_RECEIVE_ANY, c10d::OpType::RECVANYSOURCE, c10d::kUnsetTimeout};
    call.tag = static_cast<uint32_t>(tag);
    return submit(call, {}, tensors, tensors);
  }
  intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions &o) override {
    return submit({TT_JOB_BARRIER, c10d::OpType::BARRIER, o.timeout}, {}, {}, {});
  }
  void monitoredBarrier(const c10d::BarrierOptions &o, bool) override {
    barrier(o)->wait(o.timeout);
  }

 private:
  struct Call {
    tt_job_kind_t kind;
    c10d::OpType type;
    std::chrono::milliseconds timeout;
    int64_t root = 0;
    tt_reduce_op_t op = TT_REDUCE_SUM;
    uint32_t tag = 0;
    const vector<int64_t> *in_splits = nullptr, *out_splits = nullptr;
  };

  // A list of one tensor is no tensor to cut.
  void one_a_rank(const char *what, const vector<Tensor> &list) const {
    TORCH_CHECK(static_cast<int>(list.size()) == size_, "tpu_dist: ", what, ": ", list.size(),
                " tensors given for ", size_, " ranks");
  }

  // What autograd and its users expect of an operation that writes to these.
  static void overwrite(const vector<Tensor> &outs) {
    for (const auto &t : outs) {
      TORCH_CHECK(!(t.requires_grad() && t.is_leaf() && c10::GradMode::is_enabled()),
                  "a leaf Variable that requires grad is being used in an in-place operation.");
      at::assert_no_internal_overlap(t);
    }
    for (const auto &t : outs)
      if (!t.is_inference()) t.unsafeGetTensorImpl()->bump_version();
  }

  // Work that nobody waits for any longer must not hold up the end.
  void end(tt_process_group_t *group) {
    if (group && *interrupted_) tt_process_group_abort(group);
    tt_process_group_destroy(group);
  }

  // One tensor a rank of what each rank's `in` is; their sizes may differ.
  vector<Tensor> gathered(const Tensor &in, vector<Tensor> outs, std::chrono::milliseconds limit) {
    submit({TT_JOB_ALL_GATHER, c10d::OpType::ALLGATHER, limit}, {in}, outs, outs)->wait(limit);
    return outs;
  }

  // The entries of all ranks' sparse tensors as one tensor, in the order of the ranks.
  Tensor sum_of_all(const Tensor &sparse, const c10d::AllreduceOptions &o) {
    auto op = reduce_op(o.reduceOp);
    TORCH_CHECK(sparse.layout() == at::kSparse && (op == TT_REDUCE_SUM || op == TT_REDUCE_AVG),
                "tpu_dist: all_reduce of ", sparse.layout(), " tensors: only SUM and AVG of COO");
    Tensor mine = sparse.coalesce(), indices = mine._indices().contiguous();
    vector<int64_t> shape{mine.sparse_dim()};
    shape.insert(shape.end(), mine.sizes().begin(), mine.sizes().end());
    shape.push_back(mine._nnz());
    Tensor own = at::tensor(shape, at::kLong).to(mine.device());
    vector<Tensor> shapes, all_indices, all_values;
    for (int k = 0; k < size_; k++) shapes.push_back(at::empty_like(own));
    shapes = gathered(own, shapes, o.timeout);
    for (int k = 0; k < size_; k++) {
      Tensor host = shapes[static_cast<size_t>(k)].cpu();
      vector<int64_t> theirs(host.const_data_ptr<int64_t>(),
                             host.const_data_ptr<int64_t>() + shape.size());
      int64_t entries = std::exchange(theirs.back(), shape.back());
      TORCH_CHECK(theirs == shape, "tpu_dist: all_reduce of sparse tensors: rank ", rank_, " has ",
                  mine.sizes(), ", rank ", k, " another shape");
      auto lengths = mine._values().sizes().vec();
      lengths[0] = entries;
      all_indices.push_back(at::empty({mine.sparse_dim(), entries}, indices.options()));
      all_values.push_back(at::empty(lengths, mine._values().options()));
    }
    all_indices = gathered(indices, all_indices, o.timeout);
    all_values = gathered(mine._values().contiguous(), all_values, o.timeout);
    Tensor sum = at::sparse_coo_tensor(at::cat(all_indices, 1), at::cat(all_values), mine.sizes());
    return op == TT_REDUCE_AVG ? sum.coalesce().div(size_) : sum.coalesce();
  }

  // PREMUL_SUM is a multiplication, then SUM; an in-place collective multiplies in place.
  static tt_reduce_op_t premultiplied(const c10d::ReduceOp &op, vector<Tensor> &tensors,
                                      bool in_place) {
    if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return reduce_op(op);
    auto *by = dynamic_cast<c10d::PreMulSumSupplement *>(op.supplement_.get());
    TORCH_CHECK(by, "tpu_dist: PREMUL_SUM without its factor");
    for (auto &t : tensors) {
      bool tensor = by->tensor_factor.defined();
      if (in_place) tensor ? t.mul_(by->tensor_factor) : t.mul_(by->double_factor);
      if (!in_place) t = tensor ? t.mul(by->tensor_factor) : t.mul(by->double_factor);
    }
    return TT_REDUCE_SUM;
  }

  static vector<tt_tensor_t> describe(const vector<Tensor> &tensors) {
    vector<tt_tensor_t> out;
    for (const auto &t : tensors) {
      TORCH_CHECK(t.defined() && t.device().type() == tt::kTpu && t.layout() == at::kStrided,
                  "tpu_dist: expects dense tpu tensors, got ",
                  t.defined() ? t.toString() : "an undefined one",
                  t.defined() ? c10::str(" on ", t.device()) : std::string());
      out.push_back(tt::tensor_describe(t));
    }
    return out;
  }

  intrusive_ptr<c10d::Work> submit(const Call &call, const vector<Tensor> &ins,
                                   const vector<Tensor> &outs, vector<Tensor> results) {
    auto c_ins = describe(ins), c_outs = describe(outs);
    auto splits = [](const vector<int64_t> *s) { return s && !s->empty() ? s->data() : nullptr; };
    tt_job_t job{call.kind,
                 call.op,
                 static_cast<uint32_t>(call.root),
                 call.tag,
                 c_ins.data(),
                 c_outs.data(),
                 static_cast<uint32_t>(c_ins.size()),
                 static_cast<uint32_t>(c_outs.size()),
                 splits(call.in_splits),
                 splits(call.out_splits),
                 seconds(call.timeout)};
    tt_work_t *work = nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(group_, "tpu_dist: the process group was destroyed");
    TT_CALL(tt_process_group_submit(group_, &job, &work));
    sequence_++;
    if (coalescing_) {
      tt_work_retain(work);
      coalesced_.push_back(work);
      coalesced_outputs_.insert(coalesced_outputs_.end(), results.begin(), results.end());
    }
    return c10::make_intrusive<TpuWork>(rank_, call.type, Works{work}, std::move(results),
                                        interrupted_, event_title(call.kind), ins);
  }

  // Several calls behind one work.
  template <class F>
  intrusive_ptr<c10d::Work> each(size_t count, c10d::OpType type, F one) {
    bool outer = coalescing_;
    if (!outer) startCoalescing();
    intrusive_ptr<c10d::Work> last;
    for (size_t i = 0; i < count; i++) last = one(i);
    return outer && last ? last : endCoalescing();
  }

  const Interrupted interrupted_ = std::make_shared<std::atomic<bool>>(false);
  std::mutex mutex_;                     // guards what follows
  tt_process_group_t *group_ = nullptr;  // until the shutdown
  uint64_t sequence_ = 0;
  bool coalescing_ = false;
  Works coalesced_;
  vector<Tensor> coalesced_outputs_;
};

// What DDP's logger measures the steps of an iteration with: the device's events, not the host
// clock.
class TpuTimer : public c10d::Timer {
 public:
  explicit TpuTimer(c10::Device device) : device_(device) {}
  void record(Event event) override {
    Timer::record(event);
    auto &place = events_[static_cast<size_t>(event)];
    place.emplace(tt::kTpu, c10::EventFlag::BACKEND_DEFAULT);
    place->record(c10::impl::VirtualGuardImpl(tt::kTpu).getStream(device_));
  }
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    auto &from = events_[static_cast<size_t>(start)], &to = events_[static_cast<size_t>(end)];
    if (!from || !to) return std::nullopt;
    from->synchronize();
    to->synchronize();
    double ms = from->elapsedTime(*to);
    if (ms < 0) return std::nullopt;  // one of them is of an earlier iteration
    return static_cast<int64_t>(ms * 1e6);
  }

 private:
  c10::Device device_;
  std::array<std::optional<c10::Event>, 5> events_;
};

}  // namespace

namespace c10d {
namespace {
C10_REGISTER_TYPED_CLASS(TimerRegistry, tt::kTpu, TpuTimer)
}
}  // namespace c10d

// c10d itself knows sparse tensors of two devices only.
static std::tuple<vector<Tensor>, intrusive_ptr<c10d::Work>> allreduce_sparse(
    at::TensorList tensors, const intrusive_ptr<c10d::ProcessGroup> &group,
    const intrusive_ptr<c10d::ReduceOp> &op, const std::optional<Tensor> &, bool async,
    int64_t timeout) {
  auto list = tensors.vec();
  c10d::AllreduceOptions options;
  options.reduceOp = *op;
  options.timeout = std::chrono::milliseconds(timeout);
  options.asyncOp = async;
  auto work = group->getBackend(tt::kTpu)->allreduce_sparse(list, options);
  return {std::move(list), work};
}
TORCH_LIBRARY_IMPL(c10d, SparsePrivateUse1, m) { m.impl("allreduce_", allreduce_sparse); }

PyObject *tt::py_process_group_create(PyObject *, PyObject *args) {
  PyObject *store = nullptr, *list = nullptr, *function = nullptr;
  int rank = 0, size = 0, world = 0;
  double timeout_s = 0;
  if (!PyArg_ParseTuple(args, "OiidOiO", &store, &rank, &size, &timeout_s, &list, &world,
                        &function))
    return nullptr;
  HANDLE_TH_ERRORS
  auto ranks = py::handle(list).cast<vector<int64_t>>();
  auto c_store = py::handle(store).cast<intrusive_ptr<c10d::Store>>();
  intrusive_ptr<c10d::Backend> backend;
  auto link = py::reinterpret_borrow<py::object>(function);
  {
    py::gil_scoped_release no_gil;
    backend = c10::make_intrusive<TpuDist>(*c_store, rank, size, timeout_s, ranks, world, &link);
  }
  return py::cast(backend).release().ptr();
  END_HANDLE_TH_ERRORS
}
