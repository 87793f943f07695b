// The order of test files: the longest first, so that none of them runs alone at the end.
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
    return [...files].sort((a, b) => secondsOf.get(b.moduleId) - secondsOf.get(a.moduleId));
  }
}
