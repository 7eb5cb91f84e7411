// SPDX-License-Identifier: Apache-2.0
/* filters - makes the server's filters on stacks and frames (docs/api.md) from the reader's choices. */
export const ACTIONS = [
	{ value: "show-stack", label: "Show stack", hint: "stacks with such a frame" },
	{ value: "hide-stack", label: "Hide stack", hint: "stacks without such a frame" },
	{ value: "show-from", label: "Show from frame", hint: "from the outermost such frame on" },
	{ value: "show-frame", label: "Show frame", hint: "only such frames" },
	{ value: "hide-frame", label: "Hide frame", hint: "all but such frames" },
] as const;

export type Action = (typeof ACTIONS)[number]["value"];

export const FIELDS = ["function", "binary", "file", "kind", "system_name", "address", "line"] as const;

export const FILTER_OPERATORS = [
	{ value: "=", label: "is" },
	{ value: "*=", label: "contains" },
	{ value: "^=", label: "starts with" },
	{ value: "=~", label: "matches" },
	{ value: "!=", label: "is not" },
	{ value: "!*=", label: "does not contain" },
	{ value: "!^=", label: "does not start with" },
	{ value: "!~", label: "does not match" },
] as const;

export function filterText(action: Action, field: string, operator: string, value: string): string {
	return `${action} ${field}${operator}"${value.replace(/[\\"]/g, "\\$&")}"`;
}

/* Hides what a runtime does for itself; its time counts for the code that made it do so. */
export const PRESETS: { name: string; filters: string[] }[] = [
	{ name: "Go runtime", filters: ['hide-frame function=~"runtime([.]|/internal/).*"'] },
	{ name: "Python interpreter", filters: ['hide-frame binary=~"(lib)?python[0-9.]*(so)?.*",kind=native'] },
	{
		name: "Node.js internals",
		filters: ['hide-frame binary=~"node|nodejs|libnode.*",kind=native', 'hide-frame file^="node:"'],
	},
	{
		name: "Java runtime",
		filters: [
			'hide-frame binary=~"lib(jvm|jli|java|net|nio)[.].*"',
			'hide-frame function=~"(java|jdk|sun)[.].*"',
		],
	},
	{ name: "Rust standard library", filters: ['hide-frame function=~"<?(std|core|alloc)::.*|rust_.*|__rust.*"'] },
	{ name: "C library", filters: ['hide-frame binary=~"(libc|libpthread|libm|ld-linux|ld-musl)[.-].*"'] },
	{ name: "Kernel", filters: ["hide-frame kind=kernel"] },
];

/* "hide-frame kind=kernel" -> ["Hide frame", "kind=kernel"], for a chip. */
export function describeFilter(filter: string): [string, string] {
	const [, action = "", rest = ""] = /^(\S+)\s*(.*)$/s.exec(filter) ?? [];
	return [ACTIONS.find(({ value }) => value === action)?.label ?? action, rest];
}
