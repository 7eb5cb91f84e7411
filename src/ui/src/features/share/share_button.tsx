// SPDX-License-Identifier: Apache-2.0
/* share_button - the button; the code of its panel is loaded when it is pressed. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { Icon } from "../../kit/icons";
import { lazy } from "../../kit/lazy";
import { Popover } from "../../kit/popover";

const SharePanel = lazy(() => import("./share").then((view) => view.SharePanel));

export function Share(): JSX.Element {
	const [open, setOpen] = useState(false);
	const close = useCallback(() => setOpen(false), []);
	return (
		<Popover
			open={open}
			onClose={close}
			class="share"
			button={
				<button
					type="button"
					class="icon-button"
					id="share"
					aria-haspopup="dialog"
					aria-expanded={open}
					aria-label="Share and download"
					title="Share and download"
					onClick={() => setOpen(!open)}
				>
					<Icon name="share" />
				</button>
			}
		>
			<SharePanel />
		</Popover>
	);
}
