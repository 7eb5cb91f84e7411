// SPDX-License-Identifier: Apache-2.0
/* overlays - which of the dialogs and menus over the page are open. */
import { signal } from "@preact/signals";

export const helpOpen = signal(false);
export const paletteOpen = signal(false);
/* Where the menu of the selected frame is open, in page pixels. */
export const frameMenu = signal<{ x: number; y: number } | null>(null);
