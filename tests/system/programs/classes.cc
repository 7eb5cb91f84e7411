// SPDX-License-Identifier: Apache-2.0
/* Virtual methods: overridden, of a template, of a local class, with a base in the library. */
#include <stdexcept>
#include <cstdio>
namespace shapes {
struct Shape {
	virtual ~Shape();
	virtual double area() const = 0;
	virtual double scaled(double by) const;
};
Shape::~Shape() {}
double Shape::scaled(double by) const { return area() * by; }
struct Rectangle : Shape {
	double a = 2, b = 3;
	double area() const override;
};
double Rectangle::area() const { return a * b; }
struct Square : Rectangle {
	double scaled(double by) const override;
};
double Square::scaled(double by) const { return by * by; }
template <typename T> struct Box {
	virtual ~Box() {}
	virtual T open(T with) { puts("open"); return with; }
};
}
namespace {
struct Local : shapes::Box<int> {
	int open(int with) override { puts("local"); return with + 1; }
};
}
/* Its base is in the library: the method could be that one's, unless that is in the program. */
struct Error : std::runtime_error {
	using std::runtime_error::runtime_error;
	virtual void tell() const;
};
void Error::tell() const { puts(what()); }
int main(int argc, char **)
{
	shapes::Rectangle rectangle;
	shapes::Square square;
	Local local;
	shapes::Box<int> box;
	const shapes::Shape *shape = argc > 1 ? &rectangle : &square;
	shapes::Box<int> *held = argc > 1 ? &box : &local;
	try {
		if (argc > 2)
			throw Error("x");
	} catch (const Error &error) {
		error.tell();
	}
	return (int)(shape->scaled(2) + shape->area()) + held->open(1) > 100;
}
