import { expect, test } from "vitest";
import { createLargeRequests } from "./enqueue.ts";

test("large requests of one service run sequentially, those of others concurrently", async () => {
  const large = createLargeRequests(() => 0);
  const began: string[] = [];
  const gates = new Map(["a1", "a2", "b1"].map((name) => [name, Promise.withResolvers<string>()]));
  const ask = (service: string, name: string) =>
    large.runSequentially(service, () => {
      began.push(name);
      return gates.get(name)?.promise ?? Promise.reject(new Error("no gate"));
    });
  const [first, second, other] = [ask("a", "a1"), ask("a", "a2"), ask("b", "b1")];
  gates.get("b1")?.resolve("b1 is done");
  expect(await other).toBe("b1 is done");
  expect(began).toEqual(["a1", "b1"]);
  gates.get("a1")?.reject(new Error("a1 failed"));
  await expect(first).rejects.toThrow("a1 failed");
  gates.get("a2")?.resolve("a2 is done");
  expect(await second).toBe("a2 is done");
});

test("a large request that waited too long is refused, and the next has its own time-out", async () => {
  let now = 0;
  const large = createLargeRequests(() => now);
  const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = large.runSequentially("a", () => {
    started.resolve();
    return gate.promise;
  });
  const late = large.runSequentially("a", () => Promise.resolve());
  await started.promise;
  now = 60_001;
  const next = large.runSequentially("a", () => Promise.resolve("done"));
  const refused = expect(late).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE", retryAfterS: 5 });
  gate.resolve();
  await first;
  await refused;
  expect(await next).toBe("done");
});
