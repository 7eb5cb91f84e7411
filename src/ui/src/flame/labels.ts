// SPDX-License-Identifier: Apache-2.0
/*
 * labels - the text for a box of a given width. The font is monospace, so the width is a number of
 * characters and painting measures nothing; names with characters outside of ASCII are measured once.
 */
import { shorten } from "../model/shortname";
import { TRIMMED, type Profile, nodeName } from "../model/profile";

export const LABEL_PADDING = 4;
export const LABEL_WIDTH_MIN = 28;
const CACHE_MAX = 50_000;

export class Labels {
	private charWidth = 7;
	private readonly cache = new Map<string, string>();

	setFont(context: CanvasRenderingContext2D, font: string): void {
		context.font = font;
		this.charWidth = context.measureText("MMMMMMMMMM").width / 10;
		this.cache.clear();
	}

	/* The text for `node` in a box of `width` CSS pixels, or "". */
	fit(
		context: CanvasRenderingContext2D, profile: Profile, node: number, width: number,
		prefix: ((node: number) => string) | null = null,
	): string {
		const inner = width - 2 * LABEL_PADDING;
		const room = Math.floor(inner / this.charWidth);
		if (room < 2 || profile.flags[node]! & TRIMMED)
			return "";
		const before = prefix?.(node);
		if (before) {
			const rest = this.fit(context, profile, node, width - (before.length + 1) * this.charWidth);
			return before.length > room ? "" : rest ? `${before} ${rest}` : before;
		}
		const name = nodeName(profile, node);
		if (name.length <= room && isAscii(name))
			return name;
		const key = `${room} ${name.length > 400 ? name.slice(0, 400) : name}`;
		let label = this.cache.get(key);
		if (label === undefined) {
			label = isAscii(name) ? shorten(name, room) : fitMeasured(context, name, inner, room);
			if (this.cache.size > CACHE_MAX)
				this.cache.clear();
			this.cache.set(key, label);
		}
		return label;
	}
}

function isAscii(text: string): boolean {
	for (let i = 0; i < text.length; i++)
		if (text.charCodeAt(i) > 126 || text.charCodeAt(i) < 32)
			return false;
	return true;
}

function fitMeasured(context: CanvasRenderingContext2D, name: string, inner: number, room: number): string {
	const clean = name.replace(/[\u0000-\u001f\u007f]/g, "\ufffd");
	for (let chars = Math.min(room, clean.length); chars >= 2; chars--) {
		const label = shorten(clean, chars);
		if (context.measureText(label).width <= inner)
			return label;
	}
	return "";
}
