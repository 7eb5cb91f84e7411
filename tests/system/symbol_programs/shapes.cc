/* SPDX-License-Identifier: Apache-2.0 */
/* A small program with inlined calls, a lambda, templates and a cold part. */
volatile int sink;
namespace shapes
{
static inline __attribute__((always_inline)) int twice(int v)
{
	sink = v;
	return v * 2;
}
template <typename T> static inline __attribute__((always_inline)) T both(T a)
{
	T sum = twice(a);
	for (int i = 0; i < sink; i++)
		sum += twice(a + i);
	return sum;
}
struct box {
	int edge;
	__attribute__((noinline)) int volume(int height);
};
int box::volume(int height)
{
	auto grow = [&](int by) {
		sink = by;
		return edge + by;
	};
	return both(edge) * height + grow(height);
}
} // namespace shapes
static __attribute__((noinline)) int unlikely_path(int v)
{
	if (__builtin_expect(v > 1000, 0)) {
		sink = v;
		__builtin_trap();
	}
	return shapes::both<long>(v);
}
__attribute__((noinline)) int unused_function(int v)
{
	return shapes::both(v) + 1;
}
int main(int argc, char **)
{
	shapes::box b{ argc };
	return b.volume(3) + unlikely_path(argc);
}
