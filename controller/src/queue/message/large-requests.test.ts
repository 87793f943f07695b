import { expect, test } from "vitest";
import { createLargeRequests } from "./large-requests.ts";

test("large requests of a service go one after another, those of others beside them", async () => {
  const large = createLargeRequests(() => 0);
  const began: string[] = [];
  const gates = new Map(["a1", "a2", "b1"].map((name) => [name, Promise.withResolvers<string>()]));
  const ask = (service: string, name: string) =>
    large.inTurn(service, () => {
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

test("a large request that waited for too long is refused, and the next one has its own time", async () => {
  let now = 0;
  const large = createLargeRequests(() => now);
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = large.inTurn("a", () => {
    begun.resolve();
    return gate.promise;
  });
  const late = large.inTurn("a", () => Promise.resolve());
  await begun.promise;
  now = 60_001;
  const next = large.inTurn("a", () => Promise.resolve("done"));
  const refused = expect(late).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE", retryAfterS: 5 });
  gate.resolve();
  await first;
  await refused;
  expect(await next).toBe("done");
});
