import { expect, it } from "vitest";
import { createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { QueuesUnderTest } from "./queues-under-test.ts";

/** Cases of callers that try to use other organizations' objects. */
export function hostileCases(fixture: QueuesUnderTest): void {
  it("return nothing for receipts, ids and tasks of others, or invented ones", async () => {
    await fixture.create("mine");
    await fixture.create("other");
    const taskId = await fixture.enqueue("mine", [{ n: 1 }, { n: 2 }]);
    await fixture.enqueue("other", [{ n: 3 }]);
    const [claimed] = await fixture.claim("mine", { visibility_timeout_seconds: 3600 });
    const receipt = claimed?.receipt ?? "";
    const middle = Math.floor(receipt.length / 2);
    const flipped = receipt.slice(0, middle) + (receipt[middle] === "A" ? "B" : "A") + receipt.slice(middle + 1);
    const status = async (queue: string, verb: string, claimReceipt: string) =>
      (
        await fixture.platform.rest.post(fixture.path(`/${queue}/messages/${verb}`), {
          messages: [{ receipt: claimReceipt }],
        })
      ).status;
    for (const forged of ["", "x", String(claimed?.id), flipped, receipt.slice(1), receipt + receipt, "sealed.v1.AAAA"])
      for (const verb of ["ack", "nack", "extend"]) expect(await status("mine", verb, forged), forged).toBe(400);
    // A receipt of another queue of the same service.
    for (const verb of ["ack", "nack", "extend"]) expect(await status("other", verb, receipt)).toBe(400);
    for (const path of [
      `/other/messages?task_id=${taskId}`,
      `/other/stats?task_id=${taskId}`,
      `/mine/stats?task_id=${taskId}`,
      `/mine/messages?task_id=${taskId.slice(0, -2)}`,
      `/mine/messages?task_id=${"A".repeat(200)}`,
    ])
      expect((await fixture.platform.rest.get(fixture.path(path))).json["code"], path).toBe("task_not_found");
    // A redrive with ids of another queue's messages moves no message.
    const redriven = await fixture.platform.rest.post<{ task_id: string }>(fixture.path("/other/dead/redrive"), {
      ids: [claimed?.id],
    });
    expect(await fixture.resultOf(`/tasks/${redriven.json.task_id}`)).toMatchObject({ messages: 0 });

    const organizations = createOrganizations(fixture.platform);
    const key = await organizations.createKey(await organizations.create("strangers"));
    organizations.close();
    const outsider = fixture.platform.rest.as(key.authorization);
    expect((await outsider.get(fixture.path())).json["code"]).toBe("service_not_found");
    expect((await outsider.get(`/tasks/${taskId}`)).status).toBe(404);
    const acknowledgment = { messages: [{ receipt }] };
    expect((await outsider.post(fixture.path("/mine/messages/ack"), acknowledgment)).json["code"]).toBe(
      "service_not_found",
    );
    expect((await outsider.post(fixture.path("/mine/messages/claim"), {})).json["code"]).toBe("service_not_found");

    // The same name is a new queue: receipts of the previous one are invalid.
    expect((await fixture.platform.rest.delete(fixture.path("/mine"))).status).toBe(202);
    await waitUntil(
      "it is absent",
      async () => (await fixture.platform.rest.get(fixture.path("/mine"))).status === 404,
    );
    await fixture.create("mine");
    expect(await status("mine", "ack", receipt)).toBe(400);
    expect((await fixture.platform.rest.get(fixture.path(`/mine/messages?task_id=${taskId}`))).status).toBe(404);
  });

  it("treat names and payloads as data", async () => {
    const odd = ["a'b", 'a"b', "a;b", "a/b", "a b", "A", "", "a".repeat(129), "ä", "..", "$1", "mdb_queue.messages"];
    for (const name of odd) {
      expect((await fixture.platform.rest.post(fixture.path(), { name })).status, name).toBe(400);
      const found = await fixture.platform.rest.get(fixture.path(`/${encodeURIComponent(name)}/messages`));
      expect([400, 404, 405], name).toContain(found.status);
    }
    const longest = "-_0".padEnd(128, "z");
    await fixture.create(longest);
    const payloads = [
      { "'; DROP SCHEMA mdb_queue CASCADE; --": "$1 $$ \\ \" ' \n \u2028" },
      { __proto__: null, constructor: { prototype: 1 }, toString: "x" },
      JSON.parse('{"__proto__": {"polluted": true}}') as object,
      { "": [[], {}, null, true, -0, 1e-300] },
    ];
    await fixture.enqueue(longest, payloads);
    const claimed = await fixture.claim(longest, { max: 10 });
    expect(claimed.map(({ payload }) => JSON.stringify(payload))).toEqual(
      payloads.map((payload) => JSON.stringify(sorted(payload))),
    );
    // Short to send, long to store.
    const large =
      '{"messages":[{"payload":{"n":1e100000}},{"payload":{"n":1E+999999999999}},{"payload":{"n":-1e-5000}}]}';
    const headers = { "content-type": "application/json" };
    const refused = await fixture.platform.rest.call<{ errors: { field: string; code: string }[] }>(
      "POST",
      fixture.path(`/${longest}/messages`),
      { rawBody: large, headers },
    );
    expect(refused.status).toBe(400);
    expect(refused.json.errors.map(({ field, code }) => [field, code])).toEqual(
      [0, 1, 2].map((n) => [`messages[${n}].payload`, "out_of_range"]),
    );
  });
}

/** Members in jsonb's order: by length, then by bytes. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? 0 : value;
  const keys = Object.keys(value).toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1));
  return Object.fromEntries(keys.map((key) => [key, sorted((value as Record<string, unknown>)[key])]));
}
