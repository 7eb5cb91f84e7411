/* SPDX-License-Identifier: Apache-2.0 */
/* asleep - a program that waits until it is ended, and uses no time. */
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}
