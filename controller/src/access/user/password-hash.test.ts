import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { expect, test } from "vitest";
import { createPasswordQueue } from "./password-hash.ts";

test("recent sources go first, and one source cannot fill the queue", async () => {
  const line = createPasswordQueue(
    { concurrency: 1, unfamiliarConcurrency: 1, queueMax: 6, queueMaxPerSource: 4 },
    createSourceGroups(),
  );
  const done: string[] = [];
  const ask = (name: string, source: string, isKnown = false) =>
    line
      .run({ source, isRecent: isKnown }, async () => void done.push(name))
      .catch((error) => void done.push(`${name} ${error.key}`));
  const first = Promise.withResolvers<void>();
  const holding = line.run({ source: "192.0.2.9", isRecent: false }, () => first.promise);
  const requested = [
    ...Array.from({ length: 6 }, (_, n) => ask(`greedy-${n}`, "192.0.2.1")),
    ...Array.from({ length: 3 }, (_, n) => ask(`other-${n}`, `192.0.2.${10 + n}`)),
    ask("owner", "192.0.2.50", true),
  ];
  await Promise.resolve();
  first.resolve();
  await Promise.all([holding, ...requested]);
  expect(done).toEqual([
    "greedy-4 RATE_LIMITED",
    "greedy-5 RATE_LIMITED",
    "other-2 RATE_LIMITED",
    "owner",
    "greedy-0",
    "greedy-1",
    "greedy-2",
    "greedy-3",
    "other-0",
    "other-1",
  ]);
});

test("unfamiliar sources run one check at a time, and never delay recent ones", async () => {
  const limits = { concurrency: 2, unfamiliarConcurrency: 1, queueMax: 64, queueMaxPerSource: 4 };
  const line = createPasswordQueue(limits, createSourceGroups());
  const over = Promise.withResolvers<void>();
  const started: string[] = [];
  const ask = (name: string, isKnown: boolean) =>
    line.run({ source: `192.0.2.${started.length}`, isRecent: isKnown }, async () => {
      started.push(name);
      await over.promise;
    });
  const all = [ask("guess 1", false), ask("guess 2", false), ask("owner", true), ask("guess 3", false)];
  await Promise.resolve();
  expect(started).toEqual(["guess 1", "owner"]);
  over.resolve();
  await Promise.all(all);
  expect(started).toEqual(["guess 1", "owner", "guess 2", "guess 3"]);
});
