// SPDX-License-Identifier: Apache-2.0
/*
 * query_field - the behaviour of the matcher field: typing opens completion, keys choose from it, Enter and leaving the
 * field apply the text. Keys that are pressed before the list has arrived are kept and applied to it.
 */
import { signal } from "@preact/signals";
import { type Completion, completionAt, parseMatchers } from "../../model/selector";
import { complete, narrowed, offered } from "./offers";

export class QueryField {
	readonly text = signal("");
	readonly scroll = signal(0);
	readonly want = signal<Completion | null>(null);
	readonly items = signal<string[]>([]);
	readonly active = signal(-1);
	/* What is wrong with the text, in words. */
	readonly note = signal("");
	input: HTMLInputElement | null = null;
	onApply: (matchers: string) => void = () => undefined;
	/* What is in force, and what it was last told to be. */
	private matchers = "";
	private told = "";
	/* Null when no list is coming. */
	private ahead: string[] | null = null;

	readonly attach = (input: HTMLInputElement | null): void => {
		this.input = input;
	};

	/* What is in force has changed; a reader who is typing is not disturbed. */
	follow(matchers: string): void {
		this.matchers = this.told = matchers;
		if (document.activeElement !== this.input)
			this.text.value = matchers;
	}

	get isOpen(): boolean {
		return this.want.value !== null && this.items.value.length > 0;
	}

	readonly suggest = (): void => {
		const at = this.input!.selectionStart ?? this.text.value.length;
		const found = completionAt(this.text.value, at);
		const offer = (all: readonly string[]) => {
			this.items.value = narrowed(all, found.typed);
			const keys = this.ahead ?? [];
			this.ahead = null;
			keys.forEach((key) => this.press(key));
		};
		this.want.value = found;
		this.active.value = -1;
		this.ahead = null;
		const answer = offered(found);
		if (!(answer instanceof Promise)) {
			offer(answer);
			return;
		}
		this.items.value = [];
		this.ahead = [];
		void answer.then((all) => this.want.value === found && offer(all));
	};

	private close(): void {
		this.want.value = null;
		this.items.value = [];
		this.ahead = null;
	}

	private apply(): void {
		const state = parseMatchers(this.text.value);
		if (!state.ok) {
			this.note.value = `Column ${state.column + 1}: ${state.reason}.`;
			return;
		}
		this.note.value = "";
		this.close();
		const inner = this.text.value.trim().replace(/^\{/, "").replace(/\}$/, "").trim();
		if (inner === this.told)
			return;
		this.told = inner;
		this.onApply(inner);
	}

	take(item: string): void {
		const chosen = this.want.value!;
		const next = complete(this.text.value, chosen, item);
		this.text.value = next.text;
		this.input!.value = next.text;
		this.input!.setSelectionRange(next.caret, next.caret);
		this.input!.focus();
		if (chosen.want === "value" && parseMatchers(next.text).ok)
			this.apply();
		else
			this.suggest();
	}

	private step(down: boolean): void {
		const { length } = this.items.value;
		const up = length + (this.active.value < 0 ? 0 : -1);
		if (!this.isOpen)
			this.suggest();
		else
			this.active.value = (this.active.value + (down ? 1 : up)) % length;
	}

	private escape(): void {
		if (this.ahead || this.isOpen) {
			this.close();
			return;
		}
		this.text.value = this.matchers;
		this.note.value = "";
		this.input!.blur();
	}

	/* False when it is none of the field's keys. */
	private press(name: string): boolean {
		const waiting = this.ahead;
		const steps = name === "ArrowDown" || name === "ArrowUp";
		const chosen = this.isOpen ? this.items.value[this.active.value] : undefined;
		if (waiting && (steps || (name === "Enter" && waiting.length)))
			waiting.push(name);
		else if ((name === "Enter" || name === "Tab") && chosen !== undefined)
			this.take(chosen);
		else if (name === "Enter")
			this.apply();
		else if (steps)
			this.step(name === "ArrowDown");
		else if (name === "Escape")
			this.escape();
		else
			return false;
		return true;
	}

	readonly key = (event: KeyboardEvent): void => {
		if (event.isComposing || !this.press(event.key))
			return;
		event.preventDefault();
		event.stopPropagation();
	};

	readonly typed = (): void => {
		this.text.value = this.input!.value;
		this.scrolled();
		this.note.value = "";
		this.suggest();
	};

	readonly scrolled = (): void => {
		this.scroll.value = this.input!.scrollLeft;
	};

	readonly clear = (): void => {
		this.text.value = "";
		this.note.value = "";
		this.close();
		this.onApply("");
	};

	readonly leave = (): void => {
		this.close();
		this.apply();
	};
}
