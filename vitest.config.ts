import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./bin/longest-first.js";
import { sourceFiles } from "./bin/source-files.js";

/** Tests beside the code. */
const besideTheCode =
  "{bench,common,mtls,https,egress,feed,controller,gateway,dns,host,inference,ingress,issuer,opmsg,registry,sdk,console,cli,local,store,image,testing,agent,compute,tds}/**/*.test.ts";
const longLane = "**/*.long.test.ts";
const alone = [
  ...filesWith(/^/, /vi\.(mock|useFakeTimers)\(/),
  ...filesWith(/^(agent|compute|tds)\//, /testing\/(engines|machines|platform|servers|controller)\/|umask|chdir/),
];

/**
 * Files beside the code that do not share a worker, by their text: those that replace a module or the clock, which
 * other files of the worker would get, too, and those of agents, compute providers and the T-SQL front end that start
 * machines and engines.
 */
function filesWith(paths: RegExp, content: RegExp): string[] {
  return sourceFiles().filter(
    (path) =>
      path.endsWith(".test.ts") &&
      paths.test(path) &&
      content.test(readFileSync(join(import.meta.dirname, path), "utf8")),
  );
}

export default defineConfig({
  test: {
    // Ends what hangs; how long a thing takes is measured in bench/, never here.
    testTimeout: 180_000,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    // Of the tests of one file that say that they may run at the same time.
    maxConcurrency: 20,
    hookTimeout: 180_000,
    // A poll ends as soon as it holds; the limit is for machines that are busy.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    projects: [
      {
        extends: true,
        test: {
          name: "isolated",
          include: ["test/**/*.test.ts", "bin/*.test.js", longLane, ...alone],
          isolate: true,
        },
      },
      // A worker runs many of these files and evaluates the modules that they share once, which is most of the time of
      // a short file. So a test file leaves no state in modules, in the process or in its environment.
      {
        extends: true,
        test: {
          name: "shared",
          include: [besideTheCode],
          exclude: ["**/node_modules/**", longLane, ...alone],
          isolate: false,
        },
      },
    ],
  },
});
