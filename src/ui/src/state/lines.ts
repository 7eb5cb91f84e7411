// SPDX-License-Identifier: Apache-2.0
/* lines - which of the chart's lines is drawn alone or pointed at. */
import { signal } from "@preact/signals";

/* The line that is drawn alone, and the one pointed at, by label; "" for none. */
export const alone = signal("");
export const pointed = signal("");

export const colourOf = (line: number): number => line % 8;
