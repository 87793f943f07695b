import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{common,controller,agent,gateway,dns,sdk,local,image,test}/**/*.test.ts"],
    testTimeout: 30_000,
    maxWorkers: 2,
    hookTimeout: 120_000,
    // A poll ends as soon as it holds; the limit is for machines that are busy.
    expect: { poll: { timeout: 10_000, interval: 20 } },
  },
});
