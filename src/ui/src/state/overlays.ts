// SPDX-License-Identifier: Apache-2.0
/* overlays - which of the dialogs over the page are open. */
import { signal } from "@preact/signals";

export const helpOpen = signal(false);
export const paletteOpen = signal(false);
