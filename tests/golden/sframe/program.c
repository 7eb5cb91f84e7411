/* Functions whose rows need each size of address and offset, and both bases of the CFA. */
int leaf(int a);
int many(int *a);

int small(int a)
{
	volatile char b[300];

	b[a & 7] = (char)a;
	return leaf(b[7]) + a;
}

int large(int a)
{
	volatile char b[100000];

	b[a] = (char)a;
	return leaf(b[7]) + a;
}

int by_frame_pointer(int a)
{
	volatile char b[a];

	b[0] = (char)a;
	return leaf(b[0]) + a;
}

int far(int a, int *b)
{
	int i = leaf(a);

	__asm__ volatile(".skip 300");
	return leaf(i) + many(b) + i;
}

int farther(int a, int *b)
{
	int i = leaf(a);

	__asm__ volatile(".skip 70000");
	return leaf(i) + many(b) + i;
}

int leaf(int a)
{
	return a * a;
}

int many(int *a)
{
	int b = leaf(a[0]), c = leaf(a[1]), d = leaf(a[2]), e = leaf(a[3]), f = leaf(a[4]);

	return leaf(b) + leaf(c) * b + leaf(d) * c + leaf(e) * d + leaf(f) * e;
}
