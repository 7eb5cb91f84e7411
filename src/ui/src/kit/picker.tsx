// SPDX-License-Identifier: Apache-2.0
/* picker - a button that opens a list for choosing one or several items (ARIA listbox). */
import type { JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import { Popover } from "./popover";

export interface Option {
	value: string;
	label: string;
	hint?: string;
}

interface Properties {
	/* What is chosen here; said before the value, and to screen readers. */
	label: string;
	showLabel?: boolean;
	options: Option[];
	chosen: string[];
	/* Shown when nothing is chosen. */
	none?: string;
	empty?: string;
	multiple?: boolean;
	class?: string;
	onOpen?(): void;
	onChange(chosen: string[]): void;
}

/* The options; keys move between them and choose. */
function List({ id, label, options, chosen, multiple = false, onChoose }: Properties & {
	id: string; onChoose(value: string): void;
}): JSX.Element {
	const list = useRef<HTMLUListElement>(null);
	const [active, setActive] = useState(() =>
		Math.max(0, options.findIndex((option) => option.value === chosen[0])));
	useLayoutEffect(() => list.current?.focus(), []);
	useEffect(() => {
		list.current?.children[active]?.scrollIntoView({ block: "nearest" });
	}, [active]);
	const beginningWith = (typed: string) =>
		options.findIndex((option) => option.label.toLowerCase().startsWith(typed.toLowerCase()));
	const key = (event: KeyboardEvent) => {
		const last = options.length - 1;
		const moves: Record<string, number> = {
			ArrowDown: Math.min(last, active + 1), ArrowUp: Math.max(0, active - 1), Home: 0, End: last,
		};
		const to = moves[event.key];
		if (to !== undefined)
			setActive(to);
		else if ((event.key === "Enter" || event.key === " ") && options[active])
			onChoose(options[active].value);
		else if (event.key.length === 1)
			setActive(Math.max(active, beginningWith(event.key)));
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<ul class="options" role="listbox" tabIndex={0} ref={list}
			aria-label={label} aria-multiselectable={multiple}
			aria-activedescendant={options[active] ? `${id}-${active}` : undefined} onKeyDown={key}>
			{options.map((option, index) => (
				<li key={option.value} id={`${id}-${index}`} role="option"
					class={index === active ? "active" : ""}
					aria-selected={chosen.includes(option.value)}
					onPointerMove={() => setActive(index)} onClick={() => onChoose(option.value)}>
					<span class="tick">
						{chosen.includes(option.value) && <Icon name="check" />}
					</span>
					<span>{option.label}</span>
					{option.hint && <span class="hint">{option.hint}</span>}
				</li>
			))}
		</ul>
	);
}

let serial = 0;

export function Picker(properties: Properties): JSX.Element {
	const { label, options, chosen, multiple = false } = properties;
	const [open, setOpen] = useState(false);
	const id = useRef(`picker-${++serial}`).current;
	const button = useRef<HTMLButtonElement>(null);
	const close = useCallback(() => setOpen(false), []);
	const names = chosen.map((value) => options.find((option) => option.value === value)?.label ?? value);
	const shown = names.join(", ") || properties.none;

	const toggle = () => {
		if (!open)
			properties.onOpen?.();
		setOpen(!open);
	};
	const choose = (value: string) => {
		if (multiple) {
			const without = chosen.filter((item) => item !== value);
			properties.onChange(without.length === chosen.length ? [...chosen, value] : without);
			return;
		}
		properties.onChange([value]);
		setOpen(false);
		button.current?.focus();
	};
	return (
		<Popover open={open} onClose={close} class={properties.class} button={
			<button type="button" class="control" ref={button} aria-haspopup="listbox" aria-expanded={open}
				aria-label={`${label}${properties.showLabel ? "" : ":"} ${shown || "none"}`}
				title={label} onClick={toggle}>
				{properties.showLabel && <span class="control-label">{label} </span>}
				<span class="control-value">{shown}</span>
				<Icon name="chevron" />
			</button>
		}>
			{options.length === 0 && (
				<p class="popover-note">{properties.empty ?? "Nothing to choose from."}</p>
			)}
			<List {...properties} id={id} onChoose={choose} />
		</Popover>
	);
}
