// SPDX-License-Identifier: Apache-2.0
/*
 * query_bar - one line of matchers with completion from the server (ARIA combobox). The text is an
 * ordinary input; its colours come from an underlay with the same text.
 */
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { Icon } from "../../kit/icons";
import { parseMatchers } from "../../model/selector";
import { weightOf } from "./offers";
import { labelWords } from "../../state/label_words";
import { QueryField } from "./query_field";
import { Underlay } from "./underlay";

interface Properties {
	id: string;
	label: string;
	matchers: string;
	onApply(matchers: string): void;
}

const itemId = (id: string, index: number) => `${id}-item-${index}`;

function Suggestions({ id, field }: { id: string; field: QueryField }): JSX.Element {
	const want = field.want.value;
	return (
		<ul id={`${id}-suggestions`} class="options query-suggestions" role="listbox"
			aria-label="Suggestions" hidden={!field.isOpen}>
			{field.items.value.map((item, index) => (
				<li key={item} id={itemId(id, index)} role="option"
					class={index === field.active.value ? "active" : ""}
					aria-selected={index === field.active.value}
					onPointerDown={(event) => event.preventDefault()}
					onClick={() => field.take(item)}>
					<span class="mono">{item || '""'}</span>
					{want?.want === "value" && (
						<span class="hint number">{weightOf(want.label, item)}</span>
					)}
					{want?.want === "name" && <span class="hint">{labelWords.value[item]}</span>}
				</li>
			))}
		</ul>
	);
}

function Input({ id, label, field }: { id: string; label: string; field: QueryField }): JSX.Element {
	const open = field.isOpen;
	const activeId = open && field.active.value >= 0 ? itemId(id, field.active.value) : undefined;
	return (
		<input ref={field.attach} id={id} class="query-input" type="text" role="combobox"
			spellcheck={false} autocomplete="off"
			aria-label={label}
			aria-expanded={open} aria-controls={`${id}-suggestions`}
			aria-autocomplete="list" aria-invalid={field.note.value !== ""}
			aria-activedescendant={activeId}
			placeholder='Filter by label:  comm="nginx", node=~"web-.+"' value={field.text.value}
			onInput={field.typed} onKeyDown={field.key} onFocus={field.suggest}
			onBlur={field.leave} onClick={field.suggest} onScroll={field.scrolled} />
	);
}

export function QueryBar({ id, label, matchers, onApply }: Properties): JSX.Element {
	const field = useMemo(() => {
		const made = new QueryField();
		made.follow(matchers);
		return made;
	}, []);
	field.onApply = onApply;
	useEffect(() => field.follow(matchers), [matchers]);
	const [text, note] = [field.text.value, field.note.value];
	const parsed = parseMatchers(text);
	const applied = text.trim() === matchers.trim();
	return (
		<div class={`query-bar${note ? " invalid" : ""}`}>
			<Icon name="filter" />
			<div class="query-field">
				<Underlay text={text} wrongAt={parsed.ok || !note ? -1 : parsed.column}
					scroll={field.scroll.value} />
				<Input id={id} label={label} field={field} />
			</div>
			{!applied && !note && <kbd class="query-hint">Enter</kbd>}
			{text && (
				<button type="button" class="icon-button"
					aria-label="Clear the label filter" title="Clear the label filter"
					onPointerDown={(event) => event.preventDefault()} onClick={field.clear}>
					<Icon name="close" />
				</button>
			)}
			{note && <p class="query-note" role="alert">{note}</p>}
			<Suggestions id={id} field={field} />
		</div>
	);
}
