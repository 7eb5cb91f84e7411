// SPDX-License-Identifier: Apache-2.0
/* lines - which line of the chart is shown alone, and which is hovered. */
import { signal } from "@preact/signals";

/* The line that is drawn alone, and the one pointed at, by label; "" for none. */
export const alone = signal("");
export const pointed = signal("");

export const colourOf = (line: number): number => line % 8;
