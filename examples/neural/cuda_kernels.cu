// SPDX-License-Identifier: Apache-2.0
#include "neural/cuda_kernels.hpp"

#include "neural/kernels.h"
