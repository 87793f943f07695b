import { expect, it } from "vitest";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { QueuesUnderTest } from "./queues-under-test.ts";

/** Commands for queues, besides their creation. */
export function commandCases(fixture: QueuesUnderTest): void {
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await fixture.cli("queues", ...args, "--output", "json");
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return JSON.parse(stdout) as Record<string, unknown>;
  };

  it("have each change of their settings in the next message", async () => {
    await fixture.create("changed");
    for (const max_attempts of [7, 8, 9]) {
      expectStatus(
        await fixture.platform.rest.call("PATCH", fixture.path("/changed"), { body: { max_attempts } }),
        200,
      );
      await fixture.enqueue("changed", [{ max_attempts }]);
    }
    const { messages } = expectStatus(
      await fixture.platform.rest.get<{ messages: { max_attempts: number }[] }>(fixture.path("/changed/messages")),
      200,
    ).json;
    expect(messages.map((message) => message.max_attempts)).toEqual([7, 8, 9]);
  });

  it("are sent to, inspected, changed, purged and deleted by the command", async () => {
    await fixture.create("typed", { max_attempts: 1 });
    const sent = await json("send", "orders", "typed", '{"n": 1}');
    expect(await json("peek", "orders", "typed")).toMatchObject([
      { id: (sent["message_ids"] as number[])[0], state: "ready", payload: { n: 1 }, max_attempts: 1 },
    ]);
    expect(await json("update", "orders", "typed", "--max-attempts", "7", "--dlq", "off")).toMatchObject({
      max_attempts: 7,
      dlq_enabled: false,
    });
    // The next message has the new settings.
    await fixture.enqueue("typed", [{ n: 2 }]);
    const messages = Object.values(await json("peek", "orders", "typed", "--limit", "100"));
    expect(messages.at(-1)).toMatchObject({ payload: { n: 2 }, max_attempts: 7 });
    // Earlier messages keep the maximum attempts and the dead-letter queue from when they were sent.
    const [first] = await fixture.claim("typed", {});
    await fixture.settle("typed", "nack", [{ receipt: first?.receipt, error: "once" }]);
    await fixture.claim("typed", { max: 100 });
    expect(await json("dead", "list", "orders", "typed")).toMatchObject([{ payload: { n: 1 }, last_error: "once" }]);
    expect(await json("stats", "orders", "typed")).toMatchObject({ ready_messages: 0, dead_messages: 1 });
    const { stdout: purgedDead } = await fixture.cli("queues", "dead", "purge", "orders", "typed", "--yes");
    expect(purgedDead).toContain("1 ");
    expect(await json("dead", "list", "orders", "typed")).toEqual([]);
    await fixture.enqueue("typed", [{ n: 3 }, { n: 4 }]);
    expect(await fixture.cli("queues", "purge", "orders", "typed", "--yes")).toMatchObject({ code: 0 });
    expect(await fixture.leftIn("typed")).toBe(0);
    const precise = '{"big":12345678901234567890,"small":0.12345678901234567891}';
    await fixture.cli("queues", "send", "orders", "typed", precise);
    const { stdout: peeked } = await fixture.cli("queues", "peek", "orders", "typed", "--output", "json");
    for (const digits of ["12345678901234567890", "0.12345678901234567891"]) expect(peeked).toContain(digits);
    expect(await fixture.cli("queues", "purge", "orders", "typed", "--yes")).toMatchObject({ code: 0 });
    expect(await json("delete", "orders", "typed", "--yes")).toMatchObject({ status: "Deprovisioning" });
    await waitUntil("it is absent", async () => (await fixture.cli("queues", "get", "orders", "typed")).code !== 0);
  });
}
