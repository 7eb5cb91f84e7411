// SPDX-License-Identifier: Apache-2.0
/* label_words - descriptions beside the labels in a list; they are loaded when the first list is opened. */
import { signal } from "@preact/signals";

export const labelWords = signal<Readonly<Record<string, string>>>({});

export const loadLabelWords = (): void => void import("../model/label_words")
	.then(({ LABEL_WORDS }) => (labelWords.value = LABEL_WORDS), () => undefined);

export const labelOption = (label: string) => ({ value: label, label, hint: labelWords.value[label] });
