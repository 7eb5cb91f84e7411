// SPDX-License-Identifier: Apache-2.0
/* main - the page's entry point. */
import { effect } from "@preact/signals";
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/tokens.css";
import "./style/base.css";
import "./features/shell/header.css";
import "./features/chart/strip.css";
import "./features/tools/tools.css";
import "./style/main.css";
import { App } from "./features/shell/app";
import { installHook } from "./features/graph/hook";
import { startKeys } from "./state/keys";
import { followSelection } from "./state/reading";
import { paletteOpen } from "./state/overlays";
import { page } from "./state/pages";
import { startSession } from "./state/session";
import { followVerdicts } from "./state/verdicts";

installHook();
startKeys(() => (paletteOpen.value = true));
followSelection();
render(<App />, document.getElementById("app")!);
/* Not before profiles are looked at. */
const stop = effect(() => {
	if (page.value)
		return;
	queueMicrotask(() => stop());
	startSession();
	followVerdicts();
});
