// SPDX-License-Identifier: Apache-2.0
// What Boost.Compute's examples do: pi by random points, then sorting, scanning, reducing, gathering and a kernel
// written as a lambda. Integers and bits only, so that results are exact. boost_compute_programs [points]
#define CL_TARGET_OPENCL_VERSION 120
#include <boost/compute.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace compute = boost::compute;

namespace {

template <class T>
void show(const char* name, const compute::vector<T>& values, compute::command_queue& queue) {
  std::vector<T> host(values.size());
  compute::copy(values.begin(), values.end(), host.begin(), queue);
  std::uint64_t hash = 1469598103934665603U;
  for (const T value : host) hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U;
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash));
}

// As the example of that name.
void monte_carlo(std::size_t points, compute::command_queue& queue) {
  const compute::context& context = queue.get_context();
  compute::default_random_engine engine(queue, 7);
  compute::uniform_real_distribution<float> draw(0.0F, 1.0F);
  compute::vector<compute::float2_> places(points, context);
  draw.generate(compute::make_buffer_iterator<float>(places.get_buffer(), 0),
                compute::make_buffer_iterator<float>(places.get_buffer(), points * 2), engine, queue);
  BOOST_COMPUTE_FUNCTION(bool, inside, (const compute::float2_ at), { return at.x * at.x + at.y * at.y < 1.0f; });
  std::printf("inside %zu of %zu\n", compute::count_if(places.begin(), places.end(), inside, queue), points);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::stoul(argv[1]) : 1U << 18U;
  const auto device = compute::system::default_device();
  compute::context context(device);
  compute::command_queue queue(context, device);
  monte_carlo(count, queue);

  std::vector<compute::uint_> host(count);
  std::uint32_t state = 1;
  for (auto& value : host) value = state = state * 1664525U + 1013904223U;
  compute::vector<compute::uint_> values(host.begin(), host.end(), queue), sums(count, context), order(count, context),
      picked(count, context);
  compute::inclusive_scan(values.begin(), values.end(), sums.begin(), queue);
  show("scan", sums, queue);
  compute::iota(order.begin(), order.end(), 0U, queue);
  compute::vector<compute::uint_> keys(values.begin(), values.end(), queue);
  compute::sort_by_key(keys.begin(), keys.end(), order.begin(), queue);
  show("sorted keys", keys, queue);
  compute::gather(order.begin(), order.end(), sums.begin(), picked.begin(), queue);
  show("gathered", picked, queue);
  using compute::lambda::_1;
  compute::transform(picked.begin(), picked.end(), picked.begin(), _1 * 3U + 1U, queue);
  compute::reverse(picked.begin(), picked.end(), queue);
  show("transformed", picked, queue);
  compute::uint_ sum = 0;
  compute::reduce(picked.begin(), picked.end(), &sum, compute::plus<compute::uint_>(), queue);
  std::printf("sum %u\n", sum);
  compute::fill(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(count / 2), 9U, queue);
  compute::partial_sum(sums.begin(), sums.end(), order.begin(), queue);
  show("partial sums", order, queue);
}
