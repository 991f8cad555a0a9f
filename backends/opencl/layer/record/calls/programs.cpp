// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <vector>

#include <swapmm/base/text/sha256.hpp>

#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::CallKind;
using calls::ObjectKind;

std::string text_of(const char* text) { return text == nullptr ? std::string() : std::string(text); }

void program_made(Hook& hook, cl_program made, cl_context context) {
  hook.call.parent = recorder().find(context);
  hook.made(made, ObjectKind::program);
}

struct CreateFromSource {
  static void after(Hook& hook, cl_program made, cl_context context, cl_uint count, const char** texts,
                    const size_t* lengths, cl_int*) {
    program_made(hook, made, context);
    if (made == nullptr) return;
    std::string& source = hook.call.source;
    for (cl_uint i = 0; i < count; ++i) {
      const std::size_t length = lengths == nullptr || lengths[i] == 0 ? std::strlen(texts[i]) : lengths[i];
      source.append(texts[i], length);
    }
    hook.call.source_digest = text::sha256(source);
  }
};

// A binary is for one driver, so its bytes are only of use together with the inputs.
void note_binary(Hook& hook, std::string binary) {
  hook.call.is_binary = true;
  hook.call.source_digest = text::sha256(binary);
  if (recorder().keeps_content()) hook.call.source = std::move(binary);
}

struct CreateFromBinary {
  static void after(Hook& hook, cl_program made, cl_context context, cl_uint count, const cl_device_id*,
                    const size_t* lengths, const unsigned char** binaries, cl_int*, cl_int*) {
    hook.call.status = *hook.status;
    program_made(hook, made, context);
    if (made == nullptr || count != 1) return;
    note_binary(hook, std::string(reinterpret_cast<const char*>(binaries[0]), lengths[0]));
  }
};

struct CreateFromIntermediate {
  static void after(Hook& hook, cl_program made, cl_context context, const void* code, size_t length, cl_int*) {
    program_made(hook, made, context);
    if (made != nullptr) note_binary(hook, std::string(static_cast<const char*>(code), length));
  }
};

struct CreateBuiltIn {
  template <class... Rest>
  static void after(Hook& hook, cl_program made, cl_context context, Rest...) {
    program_made(hook, made, context);
  }
};

void note_build(Hook& hook, cl_program program, const char* options) {
  hook.call.kind = CallKind::build;
  hook.call.object = recorder().find(program);
  hook.call.object_kind = ObjectKind::program;
  hook.call.options = text_of(options);
}

struct Build {
  template <class... Rest>
  static void before(Hook& hook, cl_program& program, cl_uint&, const cl_device_id*&, const char*& options, Rest&...) {
    note_build(hook, program, options);
  }
};

struct Link {
  static void after(Hook& hook, cl_program made, cl_context context, cl_uint, const cl_device_id*, const char* options,
                    cl_uint count, const cl_program* programs, void(CL_CALLBACK*)(cl_program, void*), void*, cl_int*) {
    program_made(hook, made, context);
    hook.call.options = text_of(options);
    for (cl_uint i = 0; i < count && programs != nullptr; ++i) {
      hook.call.objects.push_back(recorder().find(programs[i]));
    }
  }
};

// A program that keeps binaries makes its kernels from them later. Their digest leads to the source.
struct Query {
  static void after(Hook& hook, cl_int, cl_program program, cl_program_info what, size_t size, void* into, size_t*) {
    hook.call.object = recorder().find(program);
    hook.call.object_kind = ObjectKind::program;
    if (!hook.succeeded() || what != CL_PROGRAM_BINARIES || into == nullptr || size < sizeof(void*)) return;
    const char* binary = nullptr;
    std::memcpy(&binary, into, sizeof binary);
    std::vector<std::size_t> sizes(size / sizeof(void*));
    if (binary == nullptr || next.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(std::size_t),
                                                   sizes.data(), nullptr) != CL_SUCCESS) {
      return;
    }
    hook.call.source_digest = text::sha256(std::string_view(binary, sizes.front()));
  }
};

}  // namespace

void wrap_programs(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clCreateProgramWithSource, CreateFromSource);
  SWAPMM_WRAP(clCreateProgramWithBinary, CreateFromBinary);
  SWAPMM_WRAP(clCreateProgramWithIL, CreateFromIntermediate);
  SWAPMM_WRAP(clCreateProgramWithBuiltInKernels, CreateBuiltIn);
  SWAPMM_WRAP(clBuildProgram, Build);
  SWAPMM_WRAP(clCompileProgram, Build);
  SWAPMM_WRAP(clLinkProgram, Link);
  SWAPMM_WRAP(clGetProgramInfo, Query);
}

}  // namespace swapmm::opencl::layer::record
