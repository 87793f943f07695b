// The order of test files: those with a worker of their own first, then those that share workers, since a worker ends
// when a file of the other kind is next. Of each kind the longest come first, so that none of them runs alone at the
// end.
import { relative } from "node:path";
import { BaseSequencer } from "vitest/node";
import { estimateSeconds, readDurations } from "./durations.js";
import { checkout } from "./set-up.js";

export class LongestFirst extends BaseSequencer {
  async sort(files) {
    const durations = readDurations();
    const secondsOf = new Map(
      files.map(({ moduleId }) => {
        const path = relative(checkout, moduleId);
        return [moduleId, durations.get(path) ?? estimateSeconds(path)];
      }),
    );
    const sharesWorker = ({ project }) => Number(!project.config.isolate);
    return [...files].sort(
      (a, b) => sharesWorker(a) - sharesWorker(b) || secondsOf.get(b.moduleId) - secondsOf.get(a.moduleId),
    );
  }
}
