// SPDX-License-Identifier: Apache-2.0
/*
 * gestures - turns pointer, wheel and touch events on the graph into actions: hover, press, pan, zoom.
 *
 *   wheel            scroll rows           shift + wheel, sideways wheel   pan
 *   ctrl/cmd + wheel zoom at the pointer   (a pinch on a touchpad arrives as this)
 *   drag             pan                   two fingers                     pinch
 *   click            press
 */
export interface GestureTarget {
	hover(x: number, y: number): void;
	leave(): void;
	press(x: number, y: number): void;
	pan(dx: number, dy: number): void;
	zoom(x: number, factor: number): void;
	dragging(on: boolean): void;
}

const DRAG_THRESHOLD = 4;
const LINE_PIXELS = 18;

export function attachGestures(element: HTMLElement, target: GestureTarget): () => void {
	const pointers = new Map<number, { x: number; y: number }>();
	let start: { x: number; y: number } | null = null;
	let dragged = false;
	const stop = new AbortController();

	const local = (event: MouseEvent) => {
		const box = element.getBoundingClientRect();
		return { x: event.clientX - box.left, y: event.clientY - box.top };
	};
	const distance = () => {
		const [a, b] = [...pointers.values()];
		return a && b ? Math.hypot(a.x - b.x, a.y - b.y) : 0;
	};

	function pointerDown(event: PointerEvent): void {
		if (event.button !== 0)
			return;
		pointers.set(event.pointerId, local(event));
		start = local(event);
		dragged = pointers.size > 1;
	}

	function drag(event: PointerEvent, before: { x: number; y: number }): void {
		const at = local(event);
		const span = distance();
		pointers.set(event.pointerId, at);
		if (pointers.size === 2) {
			const [a, b] = [...pointers.values()];
			if (span > 10)
				target.zoom((a!.x + b!.x) / 2, distance() / span);
			return;
		}
		if (!dragged && start && Math.hypot(at.x - start.x, at.y - start.y) < DRAG_THRESHOLD)
			return;
		if (!dragged) {
			dragged = true;
			element.setPointerCapture(event.pointerId);
			target.dragging(true);
		}
		target.pan(before.x - at.x, before.y - at.y);
	}

	function pointerMove(event: PointerEvent): void {
		const before = pointers.get(event.pointerId);
		if (before)
			drag(event, before);
		else
			target.hover(local(event).x, local(event).y);
	}

	function pointerUp(event: PointerEvent): void {
		const known = pointers.delete(event.pointerId);
		if (known && !dragged && event.type === "pointerup")
			target.press(local(event).x, local(event).y);
		if (dragged && !pointers.size)
			target.dragging(false);
		if (!pointers.size)
			start = null;
	}

	function wheel(event: WheelEvent): void {
		event.preventDefault();
		const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
		const dx = event.deltaX * lines;
		const dy = event.deltaY * lines;
		if (event.ctrlKey || event.metaKey)
			target.zoom(local(event).x, Math.exp(-Math.max(-60, Math.min(60, dy)) * 0.008));
		else if (event.shiftKey && !dx)
			target.pan(dy, 0);
		else
			target.pan(dx, dy);
		target.hover(local(event).x, local(event).y);
	}

	const options = { signal: stop.signal };
	element.addEventListener("pointerdown", pointerDown, options);
	element.addEventListener("pointermove", pointerMove, options);
	element.addEventListener("pointerup", pointerUp, options);
	element.addEventListener("pointercancel", pointerUp, options);
	element.addEventListener("pointerleave", () => target.leave(), options);
	element.addEventListener("wheel", wheel, { ...options, passive: false });
	return () => stop.abort();
}
