import { defineConfig } from "vitest/config";
import { LongestFirst } from "./bin/longest-first.js";

export default defineConfig({
  test: {
    include: [
      "{common,mtls,https,egress,feed,compute,controller,agent,gateway,dns,host,inference,issuer,sdk,console,cli,local,store,tds,image,testing,test}/**/*.test.ts",
      "bin/*.test.js",
    ],
    // Ends what hangs; how long a thing takes is measured in bench/, never here.
    testTimeout: 180_000,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    // Of the tests of one file that say that they may run at the same time.
    maxConcurrency: 20,
    hookTimeout: 180_000,
    // A poll ends as soon as it holds; the limit is for machines that are busy.
    expect: { poll: { timeout: 60_000, interval: 20 } },
  },
});
