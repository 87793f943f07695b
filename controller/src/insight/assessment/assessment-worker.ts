import { serveThread } from "@holdfast/common/worker-thread.ts";
import type { LayoutMode } from "@holdfast/tds/bind/databases.ts";
import { type Assessment, assessScript } from "@holdfast/tds/assess/assess-script.ts";

/** The worker thread of assessment-api.ts: a long script takes too much time for the event loop. */
serveThread<{ readonly script: string; readonly layoutMode: LayoutMode }, Assessment>(({ script, layoutMode }) => ({
  response: assessScript(script, layoutMode),
}));
