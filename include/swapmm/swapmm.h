// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The C interface: managers, tensors by bytes, iterations, and operations that begin and end in two calls. It is for
/// programs in C, and for other languages and frameworks. docs/c.md explains it with an example.
///
/// Each backend has a header of its own with the functions that make a #swapmm_backend: `<swapmm/c/opencl.h>` and
/// `<swapmm/c/cuda.h>`. The simulated backend is here.
///
/// Unless its comment says otherwise, a function returns ::SWAPMM_OK or the code of an error, whose text
/// swapmm_last_error() has. Errors up to ::SWAPMM_NESTED_OPERATION are mistakes of the program; nothing has changed
/// then. Null handles and pointers are ::SWAPMM_USAGE_ERROR. Handles that were destroyed must not be used; tensors are
/// numbers, so using a destroyed tensor is an error like any other. A manager is for one thread at a time: a second one
/// gets
/// ::SWAPMM_CONCURRENT_USE. Texts are UTF-8 and end with a null character.

// NOLINTBEGIN(modernize-*, readability-identifier-naming): this is C

#include <stdint.h>

/// @{
/// Marks the functions of the interface.
#if defined(_WIN32)
#if !defined(SWAPMM_SHARED)
#define SWAPMM_C_EXPORT
#elif defined(SWAPMM_BUILDING_LIBRARY)
#define SWAPMM_C_EXPORT __declspec(dllexport)
#else
#define SWAPMM_C_EXPORT __declspec(dllimport)
#endif
#else
#define SWAPMM_C_EXPORT __attribute__((visibility("default")))
#endif
/// @}

#ifdef __cplusplus
extern "C" {
#endif

// ---- errors ---------------------------------------------------------------------------------------------------------

/// What a function returns. docs/errors.md describes the errors; each has the name of its exception. Later versions may
/// add codes.
typedef enum swapmm_status {
  SWAPMM_OK = 0,                ///< done
  SWAPMM_USAGE_ERROR = 1,       ///< the program breaks a rule of the library; nothing was queued
  SWAPMM_BUNDLE_TOO_LARGE = 2,  ///< the tensors of one operation do not fit the device together
  SWAPMM_UNDEFINED_VALUE = 3,   ///< a value is needed that was never written
  SWAPMM_CONCURRENT_USE = 4,    ///< another thread is using the manager
  SWAPMM_NESTED_OPERATION = 5,  ///< an operation has begun and not ended, and the call is not allowed until it has
  SWAPMM_DROPPED_VALUE = 6,     ///< a value is needed that a followed plan dropped
  SWAPMM_PLAN_REFUSED = 7,      ///< a plan cannot be read, is invalid, or belongs to another program
  SWAPMM_ACCESS_VIOLATION = 8,  ///< with ::SWAPMM_CHECK_ACCESS: an operation did what it had not declared; it has run
  SWAPMM_BACKEND_ERROR = 9,     ///< a call of the backend's API failed
  SWAPMM_OUT_OF_MEMORY = 10,    ///< the device or the host refused memory
  SWAPMM_DEVICE_LOST = 11,      ///< the device is gone; each later call returns the same
  SWAPMM_WORK_FAILED = 12,      ///< work failed that was queued earlier, and values are lost
  SWAPMM_INTERNAL_ERROR = 13    ///< a fault of the library; please report it
} swapmm_status;

/// The text of the last error of a call on this thread: operation, tensors, need and limit. Empty if there was none.
/// Valid until the next error on this thread.
SWAPMM_C_EXPORT const char* swapmm_last_error(void);

/// The version of the library that is in use: "0.1.0".
SWAPMM_C_EXPORT const char* swapmm_version(void);

/// Frees a text that a function of this interface has made. Null is allowed.
SWAPMM_C_EXPORT void swapmm_text_destroy(char* text);

// ---- backends -------------------------------------------------------------------------------------------------------

/// A device with its queues. A manager keeps what it needs of it, so it may be destroyed before the manager.
typedef struct swapmm_backend swapmm_backend;

/// Destroys the handle. Null is allowed.
SWAPMM_C_EXPORT void swapmm_backend_destroy(swapmm_backend* backend);

// ---- managers -------------------------------------------------------------------------------------------------------

/// Runs a program whose tensors together are larger than the device.
typedef struct swapmm_manager swapmm_manager;

/// How data moves while no plan is followed.
typedef enum swapmm_demand_mode {
  SWAPMM_LEAST_RECENTLY_USED = 0,  ///< a tensor stays until its room is needed
  SWAPMM_PER_OPERATION = 1,        ///< swaps each bundle in before its operation and out after it
  /// The same as ::SWAPMM_LEAST_RECENTLY_USED, but the tensor that will be used latest goes first, as far as repeated
  /// parts of the sequence of operations tell: see docs/dynamic_programs.md. The default.
  SWAPMM_FORESEEN = 2
} swapmm_demand_mode;

/// Which values a followed plan may lose. Whatever it may not lose is copied to the host when its room is needed.
typedef enum swapmm_drop_rule {
  /// Those that observed iterations did not read any more, until the program shows that it branches: see
  /// docs/dynamic_programs.md. From then on as ::SWAPMM_DROP_PROVEN.
  SWAPMM_DROP_BY_EVIDENCE = 0,
  /// Those that observed iterations did not read any more. Reading one after all is ::SWAPMM_DROPPED_VALUE.
  SWAPMM_DROP_OBSERVED = 1,
  /// Those that are proven dead: the tensor was destroyed, its next value is written by an operation that was called
  /// already, or it is ::SWAPMM_TRANSIENT and its iteration is over. No call returns ::SWAPMM_DROPPED_VALUE.
  SWAPMM_DROP_PROVEN = 2
} swapmm_drop_rule;

/// Values for swapmm_options::flags, to be combined with `|`.
typedef enum swapmm_option_flags {
  /// Compares what operations access with what they declare. For debugging; very slow.
  SWAPMM_CHECK_ACCESS = 1,
  /// Overwrites the memory of tensors with zeros before it is given back.
  SWAPMM_SCRUB = 2,
  /// A tensor that was never written may be read, and has undefined bytes then. Iterations that do so get no plan: an
  /// operation that only works in a tensor's memory, whatever is there, should declare ::SWAPMM_WRITE.
  SWAPMM_UNDEFINED_READS = 4,
  /// Tensors that are made in an iteration are identified by the operation that first uses them. So a program that
  /// makes its tensors anew in each iteration gets a plan, even if some of them are destroyed an iteration later. Each
  /// tensor must then be made right before the operation that first uses it, or as an output of it.
  SWAPMM_IDENTIFY_BY_PRODUCER = 8,
  /// ::SWAPMM_DROP_PROVEN for programs that destroy their tensors between operations, whatever `drops` says. A plan
  /// counts on that: it knows before which operation a tensor was destroyed in observed iterations, and gives its bytes
  /// away there. A tensor that is not needed after an operation is best destroyed before the operation's end.
  ///
  /// Plans also drop values to make them again (see swapmm_operation::again). These are made before the iteration ends,
  /// whatever the program does. So the tensors of an operation must exist until it has run again as often as
  /// `times_again` says, until an operation follows no plan, or until the iteration has ended. Those that are destroyed
  /// while it runs again are dead at its end.
  SWAPMM_PROVEN_DROPS = 16
} swapmm_option_flags;

/// A file that holds values of tensors: swapmm_file_open() and swapmm_weights_open() of <swapmm/c/file.h>.
typedef struct swapmm_file swapmm_file;

/// Gives a file back. Managers that use it keep it for as long as they need it. Null is allowed.
SWAPMM_C_EXPORT void swapmm_file_destroy(swapmm_file* file);

/// Memory of another device that holds values of tensors: swapmm_opencl_neighbour(), swapmm_cuda_neighbour() and
/// swapmm_simulated_neighbour().
typedef struct swapmm_neighbour swapmm_neighbour;

/// Gives a neighbour back. Managers that use it keep it for as long as they need it. Null is allowed.
SWAPMM_C_EXPORT void swapmm_neighbour_destroy(swapmm_neighbour* neighbour);

/// What the devices of several managers share on their way to the host. Managers with the same one plan together.
typedef struct swapmm_shared_links swapmm_shared_links;

/// Makes one from the bytes per second of all copies to devices together, of those from devices, and of all of them; 0:
/// they share nothing. ::SWAPMM_USAGE_ERROR if all are 0.
SWAPMM_C_EXPORT swapmm_status swapmm_shared_links_create(uint64_t to_devices, uint64_t from_devices, uint64_t both_ways,
                                                         swapmm_shared_links** links);
/// Measures them on backends of one kind, which have no manager yet: copies of each alone, and of all at once. Takes a
/// tenth of a second or so; meanwhile it uses twice `piece` bytes of device memory and of page-locked host memory for
/// each. `links` is null after that if the devices share nothing.
SWAPMM_C_EXPORT swapmm_status swapmm_shared_links_measure(const swapmm_backend* const* backends, uint64_t count,
                                                          uint64_t piece, swapmm_shared_links** links);
/// Gives it back. Managers that use it keep it for as long as they need it. Null is allowed.
SWAPMM_C_EXPORT void swapmm_shared_links_destroy(swapmm_shared_links* links);

/// Options for one manager. swapmm_options_init() sets the defaults. docs/options.md describes them at length.
typedef struct swapmm_options {
  uint64_t struct_size;       ///< set by swapmm_options_init()
  uint64_t device_budget;     ///< bytes of the device that the manager may use; 0: CUDA's default, an error elsewhere
  uint64_t pinned_budget;     ///< limit of page-locked host memory, in bytes
  uint64_t host_budget;       ///< limit of all host memory, in bytes
  uint64_t queue_depth;       ///< points per queue by which the host may run ahead without a plan; at least 8
  uint64_t run_ahead;         ///< iterations by which the host may run ahead of a followed plan: 1 to 3
  uint32_t demand_mode;       ///< a #swapmm_demand_mode
  uint32_t flags;             ///< of #swapmm_option_flags
  uint64_t observe;           ///< equal iterations to observe before a plan is made; 0: never make a plan
  const char* planner;        ///< name of the planner
  uint64_t max_period;        ///< longest cycle of different iterations that becomes one plan
  uint64_t max_sequences;     ///< sequences remembered per iteration name
  uint64_t planning_time_ms;  ///< time to search for a plan, in milliseconds; 0: a fixed number of steps instead
  double planning_share;      ///< largest part of the running time that planning may take; 0: no such limit
  uint64_t sample_every;      ///< one in this many rounds of a plan is timed; 0: none
  double replan_above;        ///< a plan is remade if its time differs from the prediction by more than this fraction
  uint64_t trial_iterations;  ///< rounds after which the faster of a new plan and the previous state is kept
  uint64_t drops;             ///< which values a plan may lose: a #swapmm_drop_rule
  uint64_t codec_staging;     ///< of device_budget, for values that are encoded on their way to the host; 0: none is
  /// For values that fit neither on the device nor within `host_budget`; null: there is none. A manager with constants
  /// needs one; it may be the file of the constants. One manager uses a file that is written.
  swapmm_file* file;
  uint64_t file_staging;  ///< of host memory, through which values pass on their way to and from the file
  /// For values that do not fit on the device: used before the host's memory, an earlier one before a later one. Taken
  /// when the manager is made. May be null if neighbour_count is 0.
  swapmm_neighbour* const* neighbours;
  uint64_t neighbour_count;           ///< number of neighbours
  swapmm_shared_links* shared_links;  ///< that the device shares with those of other managers; null: none
  uint64_t planning_limit_ms;         ///< the fixed number of steps ends after this time, in milliseconds; 0: never
} swapmm_options;

/// Sets all options to their defaults. `struct_size` is `sizeof(swapmm_options)`.
SWAPMM_C_EXPORT swapmm_status swapmm_options_init(swapmm_options* options, uint64_t struct_size);

/// Makes a manager, and allocates its device budget at once.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_create(const swapmm_backend* backend, const swapmm_options* options,
                                                    swapmm_manager** manager);
/// Waits for all queued work, and frees the manager with all of its tensors. An operation that has not ended fails.
/// Null is allowed. While another call uses the manager (of another thread, or the one whose kernel or `again` makes
/// this call), nothing is waited for, and the manager is freed when that call ends. Calls that come later are a usage
/// error.
SWAPMM_C_EXPORT void swapmm_manager_destroy(swapmm_manager* manager);

/// Changes the device budget, outside operations and iterations. Waits for all queued work.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_set_budget(swapmm_manager* manager, uint64_t bytes);
/// Changes the bytes that the manager takes of one of its neighbours, outside operations and iterations. For less,
/// values move to other memories first; the neighbour has its memory back when the call returns. Waits for all queued
/// work. ::SWAPMM_OUT_OF_MEMORY if there is no room for them: all is then as before.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_set_neighbour_budget(swapmm_manager* manager,
                                                                  const swapmm_neighbour* neighbour, uint64_t bytes);
/// Waits until everything queued so far has ended.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_synchronize(swapmm_manager* manager);

/// What a manager has done since it was made. Exact counts and bytes.
typedef struct swapmm_numbers {
  uint64_t struct_size;           ///< set by the caller: `sizeof(swapmm_numbers)`
  uint64_t device_budget;         ///< current budget, rounded down to the alignment
  uint64_t device_used;           ///< bytes taken by the work queued so far
  uint64_t device_peak;           ///< largest device_used so far
  uint64_t host_used;             ///< host memory for values
  uint64_t host_peak;             ///< largest host_used so far
  uint64_t pinned_used;           ///< the page-locked part of host_used
  uint64_t tensors;               ///< number of tensors that exist now
  uint64_t operations;            ///< number of operations run so far
  uint64_t operations_followed;   ///< operations that a followed plan expected
  uint64_t iterations_on_demand;  ///< ended iterations that did not follow a plan from begin to end
  uint64_t iterations_followed;   ///< ended iterations that followed a plan from begin to end
  uint64_t plan_starts;           ///< how often a plan was begun
  uint64_t divergences;           ///< how often a plan was left because the program did something else
  uint64_t swap_ins;              ///< number of copies to the device
  uint64_t swap_outs;             ///< number of copies to the host
  uint64_t h2d;                   ///< bytes copied to the device
  uint64_t d2h;                   ///< bytes copied to the host
  uint64_t host_waits;            ///< number of waits of the host for the device
  uint64_t host_wait_time_ns;     ///< time of these waits, in nanoseconds
} swapmm_numbers;

/// Fills in the numbers. Waits for nothing, and also works after ::SWAPMM_DEVICE_LOST.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_numbers(swapmm_manager* manager, swapmm_numbers* numbers);
/// The whole report, with plans and the reasons why there is none, as JSON: the format swapmm-manager-report of
/// docs/formats.md. The caller destroys the text.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_report(swapmm_manager* manager, char** json);
/// The trace of the iteration of that name that was observed last, in the format swapmm-trace of docs/formats.md. The
/// caller destroys the text. ::SWAPMM_USAGE_ERROR if none was observed yet: one is when its times are known, after the
/// next one at the latest.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_trace(swapmm_manager* manager, const char* iteration, char** json);
/// The plan for that iteration name, in the format swapmm-plan of docs/formats.md. The caller destroys the text.
/// ::SWAPMM_USAGE_ERROR if there is none.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_save_plan(swapmm_manager* manager, const char* iteration, char** json);
/// Reads a plan for iterations of that name, of version 1 or 2. They follow it from the second iteration on.
SWAPMM_C_EXPORT swapmm_status swapmm_manager_load_plan(swapmm_manager* manager, const char* iteration,
                                                       const char* json);

// ---- tensors --------------------------------------------------------------------------------------------------------

/// A tensor of one manager: a number that is never used again in this process. 0 is no tensor.
typedef uint64_t swapmm_tensor;

/// How long the value of a tensor lives.
typedef enum swapmm_lifetime {
  SWAPMM_OBSERVED = 0,   ///< until the next iteration, unless each observed iteration begins by writing all of it
  SWAPMM_TRANSIENT = 1,  ///< dead at the end of each iteration, from the first one on
  SWAPMM_KEPT = 2        ///< survives each iteration, even if observed iterations begin by writing all of it
} swapmm_lifetime;

/// Makes a tensor without a value, of at least one byte. No memory is taken before the value needs it. The name appears
/// in errors, traces and reports; null: "tensor". `lifetime` is a #swapmm_lifetime.
SWAPMM_C_EXPORT swapmm_status swapmm_tensor_create(swapmm_manager* manager, uint64_t bytes, const char* name,
                                                   uint32_t lifetime, swapmm_tensor* tensor);
/// Makes a constant: a tensor whose value is in a file for good, from byte `offset` on. It is read when an operation
/// needs it, and no host memory holds it meanwhile. Nothing may write it: such operations and uploads are a
/// ::SWAPMM_USAGE_ERROR. The manager needs a swapmm_options::file, and keeps this one until the tensor's end.
SWAPMM_C_EXPORT swapmm_status swapmm_tensor_create_constant(swapmm_manager* manager, uint64_t bytes, const char* name,
                                                            const swapmm_file* file, uint64_t offset,
                                                            swapmm_tensor* tensor);
/// Destroys a tensor. Does not wait: its memory is freed when the work that uses it has ended. May be called by any
/// thread while others use the manager, and between the begin and the end of an operation. 0 is allowed.
SWAPMM_C_EXPORT swapmm_status swapmm_tensor_destroy(swapmm_manager* manager, swapmm_tensor tensor);
/// Sets bytes of a tensor from `offset` on. Copies `data` before it returns. An upload of a part needs the tensor's
/// value, and waits for it.
SWAPMM_C_EXPORT swapmm_status swapmm_tensor_upload(swapmm_manager* manager, swapmm_tensor tensor, uint64_t offset,
                                                   const void* data, uint64_t bytes);
/// Waits for the value, and copies bytes of it from `offset` on to `data`.
SWAPMM_C_EXPORT swapmm_status swapmm_tensor_download(swapmm_manager* manager, swapmm_tensor tensor, uint64_t offset,
                                                     void* data, uint64_t bytes);

// ---- iterations -----------------------------------------------------------------------------------------------------

/// Begins an iteration: one pass of the part that the program repeats. The name distinguishes the repeated parts of a
/// program; null: "iteration". The call may make a plan, which takes as long as the planner does.
SWAPMM_C_EXPORT swapmm_status swapmm_iteration_begin(swapmm_manager* manager, const char* name);
/// Ends it. With ::SWAPMM_PROVEN_DROPS operations may run again before that; if one fails, the iteration has not ended.
/// The next call tries it once more; if it fails again, what it was to write is lost. What it was to update is lost at
/// once.
SWAPMM_C_EXPORT swapmm_status swapmm_iteration_end(swapmm_manager* manager);

// ---- operations -----------------------------------------------------------------------------------------------------

/// How an operation uses a tensor.
typedef enum swapmm_access {
  SWAPMM_READ = 0,   ///< needs the value and leaves it unchanged
  SWAPMM_WRITE = 1,  ///< gives every byte a new value
  SWAPMM_UPDATE = 2  ///< needs the value and changes it, or writes only a part of it
} swapmm_access;

/// A tensor that an operation uses.
typedef struct swapmm_use {
  swapmm_tensor tensor;  ///< the tensor; no tensor may be in one operation twice
  uint64_t access;       ///< a #swapmm_access
} swapmm_use;

/// A tensor that is made by an operation, which writes all of it.
typedef struct swapmm_output {
  uint64_t bytes;     ///< as in swapmm_tensor_create()
  const char* name;   ///< as in swapmm_tensor_create()
  uint64_t lifetime;  ///< a #swapmm_lifetime
  swapmm_tensor
      tensor;  ///< set by swapmm_operation_begin(): the new tensor, which the caller destroys; 0 after an error
} swapmm_output;

struct swapmm_operation;

/// Queues an operation's work once more, as between its begin and its end: the same calls are allowed, and the library
/// ends the operation itself. Of the given operation name, addresses, scratch, scratch_bytes and queue are set.
/// Returns 0; another value if it could not queue all of the work, which has failed then.
typedef int (*swapmm_again)(void* argument, const struct swapmm_operation* operation);

/// One unit operation. The first part is filled in by the caller, the second one by swapmm_operation_begin().
typedef struct swapmm_operation {
  uint64_t struct_size;    ///< `sizeof(swapmm_operation)`
  const char* name;        ///< appears in errors, traces and reports; null: "operation"
  const swapmm_use* uses;  ///< tensors that exist; may be null if use_count is 0
  uint64_t use_count;      ///< number of uses
  swapmm_output* outputs;  ///< tensors that the operation makes; may be null if output_count is 0
  uint64_t output_count;   ///< number of outputs
  uint64_t scratch_bytes;  ///< size of a work area for this operation alone; 0: none
  uint64_t takes_waits;  ///< 1: the caller makes the work wait for `waits`, and passes its event to the end; 0: neither
  void** addresses;      ///< room for use_count + output_count addresses; null: they are not wanted

  void* scratch;        ///< address of the work area; null if there is none
  void* queue;          ///< the API's own queue: a cl_command_queue, a cudaStream_t; null on the simulated backend
  const void* waits;    ///< with takes_waits: an array of native events, such as `const cl_event*`; null if empty
  uint64_t wait_count;  ///< number of these events

  swapmm_again again;  ///< by the caller: how the operation may run again; null: it may not
  /// By the caller: what `again` gets. Both are usable until the call returns that ends the iteration.
  void* again_argument;

  uint64_t follows_plan;  ///< 1: a plan expected the operation; 0: it is on demand
  uint64_t times_again;   ///< how often the plan runs it again later in this iteration. It may become less, never more
} swapmm_operation;

/// Begins an operation: brings its tensors to the device and makes the queue wait for them. Between this call and the
/// end the caller queues the operation's work, on the same thread. Only swapmm_operation_address(),
/// swapmm_tensor_destroy() and swapmm_simulated_launch() may be called for this manager in between.
///
/// Addresses are those of the API: a `cl_mem` whose first byte is the tensor's first one, a device pointer on CUDA, a
/// pointer on the simulated backend. They are in the order of uses, then outputs. Addresses and waits are valid until
/// the operation ends; the next operation may have other addresses.
///
/// Without takes_waits all work must be queued on `queue`. With it, `queue` need not wait: the work waits for the
/// events, and its own event goes to swapmm_operation_end(). On CUDA it may be on any stream of the device then;
/// elsewhere it must be on `queue`.
///
/// An operation with `again` is replayable: the same inputs give the same outputs, bit for bit. A plan may drop what it
/// wrote and call `again` later in the iteration, inside a call of the same manager, where that is cheaper than copies.
/// One that updates a tensor runs again together with those that gave the tensor its value before. Not with
/// takes_waits.
SWAPMM_C_EXPORT swapmm_status swapmm_operation_begin(swapmm_manager* manager, swapmm_operation* operation);

/// The address of a part of a tensor of the running operation. On OpenCL this is a sub-buffer, and `offset` must be a
/// multiple of the device's CL_DEVICE_MEM_BASE_ADDR_ALIGN. Elsewhere it is address + offset.
SWAPMM_C_EXPORT swapmm_status swapmm_operation_address(swapmm_manager* manager, swapmm_tensor tensor, uint64_t offset,
                                                       uint64_t bytes, void** address);

/// Ends the operation when all of its work is queued. `event` is null, or with takes_waits the API's event for the end
/// of the work. A cl_event is taken over, unless the call returns a mistake of the program (an error up to
/// ::SWAPMM_NESTED_OPERATION); a cudaEvent_t remains the caller's. With takes_waits and without an event the work must
/// be on `queue`. After a mistake of the program the operation is still running; after every other error it has ended.
SWAPMM_C_EXPORT swapmm_status swapmm_operation_end(swapmm_manager* manager, void* event);
/// Ends an operation whose work could not be queued in full. The tensors that it was to write have no value then.
SWAPMM_C_EXPORT swapmm_status swapmm_operation_fail(swapmm_manager* manager);
/// Ends an operation of which nothing was queued. All values are as before the operation, except those that a followed
/// plan had dropped because the operation was to overwrite them.
SWAPMM_C_EXPORT swapmm_status swapmm_operation_cancel(swapmm_manager* manager);

// ---- the simulated backend ------------------------------------------------------------------------------------------

/// Options for a simulated device. It runs on plain memory in virtual time, so results do not depend on the machine.
typedef struct swapmm_simulated_options {
  uint64_t struct_size;           ///< set by swapmm_simulated_options_init()
  uint64_t device_bytes;          ///< size of the device memory
  uint64_t host_bytes;            ///< limit on host memory; 0: none
  uint64_t h2d_bytes_per_second;  ///< speed of copies to the device
  uint64_t d2h_bytes_per_second;  ///< speed of copies to the host
} swapmm_simulated_options;

/// Sets all options to their defaults. `struct_size` is `sizeof(swapmm_simulated_options)`.
SWAPMM_C_EXPORT swapmm_status swapmm_simulated_options_init(swapmm_simulated_options* options, uint64_t struct_size);
/// Makes a simulated device. `options` may be null.
SWAPMM_C_EXPORT swapmm_status swapmm_simulated_create(const swapmm_simulated_options* options,
                                                      swapmm_backend** backend);
/// Makes a neighbour with that much memory for simulated devices.
SWAPMM_C_EXPORT swapmm_status swapmm_simulated_neighbour(uint64_t bytes, swapmm_neighbour** neighbour);
/// Queues a kernel of the running operation, for a manager on a simulated device. The kernel takes `nanoseconds` of
/// virtual time. Later, and on a thread that uses the manager, it calls `run(argument)`, which accesses the operation's
/// tensors as they are declared, and must not call the manager. If `run` returns anything but 0, the kernel fails. With
/// takes_waits, `event` receives what swapmm_operation_end() needs; else it may be null.
SWAPMM_C_EXPORT swapmm_status swapmm_simulated_launch(swapmm_manager* manager, uint64_t nanoseconds,
                                                      int (*run)(void* argument), void* argument, void** event);
/// The number of violations that the device's checker has found, such as an access without the needed waits or beyond
/// the end of a tensor. It is 0 unless the program or the library has a fault.
SWAPMM_C_EXPORT swapmm_status swapmm_simulated_violations(const swapmm_backend* backend, uint64_t* count);

// ---- custom devices -------------------------------------------------------------------------------------------------

/// A device whose bytes the program holds, in its own way: tensors of a framework, for example. The manager decides
/// which values are on the device and when they move; functions of the program move them. Both return 0, or a code of
/// the program's that appears in the text of ::SWAPMM_BACKEND_ERROR. They may be called within every function that
/// takes the manager, and must not call functions with it. All bytes are copied when they return.
///
/// An address of such a device is a place: a number in the form of a pointer, never null, that no memory has. The
/// manager keeps the places of values apart, so at most `bytes` bytes of values exist at a time. A value leaves its
/// place without notice: when an operation begins or a copy arrives, whatever else overlaps that place is not needed
/// there any more.
typedef struct swapmm_custom_device {
  uint64_t struct_size;  ///< set by the caller: `sizeof(swapmm_custom_device)`
  const char* name;      ///< for people; null: "custom device"
  uint64_t bytes;        ///< largest device budget
  uint64_t alignment;    ///< every address is a multiple of this power of 2; 0: 64
  void* context;         ///< passed to the functions
  /// Copies the tensor's value from where the program holds it to `to`.
  int (*copy_to_host)(void* context, swapmm_tensor tensor, void* place, void* to, uint64_t bytes);
  /// Gives the tensor a place and the value in `from`.
  int (*copy_to_device)(void* context, swapmm_tensor tensor, void* place, const void* from, uint64_t bytes);
  /// Copies the bytes of the tensor's value from `offset` on. Null: managers on this device have no file.
  int (*copy_part_to_host)(void* context, swapmm_tensor tensor, void* place, uint64_t offset, void* to, uint64_t bytes);
  /// Gives the tensor a place, if `offset` is 0, and the bytes of its value from `offset` on. Null: as above.
  int (*copy_part_to_device)(void* context, swapmm_tensor tensor, void* place, uint64_t offset, const void* from,
                             uint64_t bytes);
} swapmm_custom_device;

/// Makes a backend of a custom device. Operations have ended when swapmm_operation_end() is called, and copies when
/// their function returns. ::SWAPMM_CHECK_ACCESS and ::SWAPMM_SCRUB are not available.
SWAPMM_C_EXPORT swapmm_status swapmm_custom_create(const swapmm_custom_device* device, swapmm_backend** backend);

#ifdef __cplusplus
}  // extern "C"
#endif

// NOLINTEND(modernize-*, readability-identifier-naming)
