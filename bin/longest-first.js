// The order of test files: the longest first, so that none of them runs alone at the end.
import { relative } from "node:path";
import { BaseSequencer } from "vitest/node";
import { readDurations } from "./durations.js";
import { checkout } from "./set-up.js";

export class LongestFirst extends BaseSequencer {
  async sort(files) {
    const durations = readDurations();
    const secondsOf = ({ moduleId }) => durations.get(relative(checkout, moduleId)) ?? 0;
    return [...files].sort((a, b) => secondsOf(b) - secondsOf(a));
  }
}
