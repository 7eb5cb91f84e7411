// SPDX-License-Identifier: Apache-2.0
/*
 * row_image - the fills of the visible rows, as an image with one pixel per row that is stretched to the rows' height.
 * A hundred thousand slivers then cost as much as their pixels; a rectangle for each would cost many times that.
 */
export class RowImage {
	private readonly canvas = document.createElement("canvas");
	private readonly context = this.canvas.getContext("2d", { alpha: false })!;
	private image: ImageData | null = null;
	private pixels = new Uint32Array(0);
	private width = 0;
	private rows = 0;
	private tops: number[] = [];

	/* Starts a picture: device pixels of a row, and the top of each. */
	begin(width: number, tops: number[], background: number): void {
		this.tops = tops;
		this.rows = tops.length;
		if (!this.image || this.width !== width || this.image.height < this.rows) {
			this.width = width;
			this.canvas.width = width;
			this.canvas.height = this.rows;
			this.image = new ImageData(width, Math.max(1, this.rows));
			this.pixels = new Uint32Array(this.image.data.buffer);
		}
		this.pixels.fill(background, 0, this.width * this.rows);
	}

	fill(row: number, x: number, width: number, pixel: number): void {
		const from = row * this.width + x;
		this.pixels.fill(pixel, from, Math.min(from + width, (row + 1) * this.width));
	}

	draw(target: CanvasRenderingContext2D, height: number): void {
		if (!this.rows)
			return;
		this.context.putImageData(this.image!, 0, 0);
		target.imageSmoothingEnabled = false;
		for (let row = 0; row < this.rows; row++)
			target.drawImage(this.canvas, 0, row, this.width, 1, 0, this.tops[row]!, this.width, height);
	}
}

/* "#rrggbb" or "rgb(r,g,b)" as a pixel of an image, in the byte order of every machine that runs browsers. */
export function pixelOf(colour: string): number {
	const hex = /^#([0-9a-f]{6})$/i.exec(colour);
	const parts = hex ? [0, 2, 4].map((at) => parseInt(hex[1]!.slice(at, at + 2), 16))
		: (colour.match(/\d+/g) ?? []).slice(0, 3).map(Number);
	const [red = 0, green = 0, blue = 0] = parts;
	return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
