/* SPDX-License-Identifier: Apache-2.0 */
/* What beam_file_read finds out of Erlang/OTP 25; addresses as the tests lay them out. */
#ifndef FIRN_TESTS_BEAM_LAYOUT_25_H
#define FIRN_TESTS_BEAM_LAYOUT_25_H

#define BEAM_LAYOUT_25(base)                                                                       \
	.ranges = (base), .active_code = (base) + 0x60, .exit = (base) + 0x68,                     \
	.key = (base) + 0x70, .frame_layout = (base) + 0x78, .atoms = (base) + 0x80,               \
	.current_process = 0xa8, .lines = 0x48, .functions = 0x60, .segments = 0x78

#endif
