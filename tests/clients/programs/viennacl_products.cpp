// SPDX-License-Identifier: Apache-2.0
// What ViennaCL's own tests do: products of matrices and their parts, scans, assignments to itself, solvers; results as
// sums of their bits. Its singletons release their objects after main(). viennacl_products [n]
#define VIENNACL_WITH_OPENCL
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "viennacl/linalg/direct_solve.hpp"
#include "viennacl/linalg/inner_prod.hpp"
#include "viennacl/linalg/norm_2.hpp"
#include "viennacl/linalg/prod.hpp"
#include "viennacl/matrix.hpp"
#include "viennacl/matrix_proxy.hpp"
#include "viennacl/vector.hpp"
#include "viennacl/vector_proxy.hpp"

namespace {

using Matrix = viennacl::matrix<float>;
using Vector = viennacl::vector<float>;
std::mt19937 generator{5};

std::vector<float> drawn(std::size_t count) {
  std::uniform_real_distribution<float> draw{-1.0F, 1.0F};
  std::vector<float> values(count);
  for (auto& value : values) value = draw(generator);
  return values;
}

void show(const char* name, const std::vector<float>& values) {
  std::uint64_t hash = 1469598103934665603U;
  for (const float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211U;
  }
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash));
}

void show(const char* name, const Matrix& matrix) {
  // Its padding is not a result.
  std::vector<std::vector<float>> rows(matrix.size1(), std::vector<float>(matrix.size2()));
  viennacl::copy(matrix, rows);
  std::vector<float> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  show(name, values);
}

void show(const char* name, const Vector& vector) {
  std::vector<float> values(vector.size());
  viennacl::copy(vector, values);
  show(name, values);
}

Matrix matrix_of(std::size_t n) {
  const auto values = drawn(n * n);
  std::vector<std::vector<float>> rows(n);
  for (std::size_t i = 0; i < n; ++i) rows[i].assign(values.begin() + i * n, values.begin() + (i + 1) * n);
  Matrix made(n, n);
  viennacl::copy(rows, made);
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t n = argc > 1 ? std::stoul(argv[1]) : 256;
  using viennacl::linalg::prod;
  Matrix a = matrix_of(n), b = matrix_of(n), c = matrix_of(n);
  c = prod(a, b);
  show("A B", c);
  c = prod(trans(a), b);
  show("A' B", c);
  c += prod(a, trans(b));
  show("C + A B'", c);
  a = prod(a, b);
  show("A = A B", a);
  const viennacl::range half(0, n / 2), rest(n / 2, n);
  viennacl::matrix_range<Matrix> part(c, half, rest), other(a, rest, half);
  Matrix product_of_parts = prod(part, other);  // of another size than the others
  show("parts", product_of_parts);
  a += 0.5F * c;
  a = a;
  a -= trans(c);
  show("A + C / 2 - C'", a);
  const auto host = drawn(n * 64);
  Vector x(host.size()), y(host.size());
  viennacl::copy(host, x);
  viennacl::linalg::inclusive_scan(x, y);
  show("scan", y);
  viennacl::linalg::exclusive_scan(y);
  show("exclusive scan", y);
  viennacl::vector_slice<Vector> even(x, viennacl::slice(0, 2, n)), odd(x, viennacl::slice(1, 2, n));
  even += 2.0F * odd;
  show("slices", x);
  Vector v(n);
  viennacl::copy(drawn(n), v);
  Vector w = prod(c, v);
  show("C v", w);
  show("norm, product", std::vector<float>{static_cast<float>(viennacl::linalg::norm_2(w)),
                                           static_cast<float>(viennacl::linalg::inner_prod(v, w))});
  Matrix l = viennacl::identity_matrix<float>(n);
  l += 0.001F * c;
  viennacl::linalg::inplace_solve(l, w, viennacl::linalg::lower_tag());
  show("L \\ w", w);
}
