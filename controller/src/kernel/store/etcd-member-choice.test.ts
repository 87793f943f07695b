import { setTimeout as delay } from "node:timers/promises";
import { GRPCCancelledError, GRPCDeadlineExceededError, GRPCUnavailableError } from "etcd3";
import { silentLog } from "@holdfast/common/log.ts";
import { startTestEtcdCluster, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { until, waitUntil } from "@holdfast/testing/wait-until.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createEtcdClient } from "./etcd-client.ts";
import { createMemberChoice, MemberSkipped } from "./etcd-member-choice.ts";
import { createEtcdStore } from "./etcd-store.ts";

const skipMs = 5_000;

describe("the choice", () => {
  /** Members of which some fail, and the order in which one call tries them. */
  function choiceOf(...names: string[]) {
    let now = 0;
    const failing = new Map<string, Error>();
    const choice = createMemberChoice(() => now);
    const policies = new Map(names.map((name) => [name, choice.policyOf(name)]));
    const stream = () => ({ cancel: () => undefined });
    /** Makes a call like etcd3, by the first member whose policy does not skip it, and names that member. */
    async function call(order = names, result: () => unknown = () => "response"): Promise<string | undefined> {
      for (const name of order) {
        let isCalled = false;
        const run = () => {
          isCalled = true;
          const error = failing.get(name);
          if (error !== undefined) throw error;
          return result();
        };
        const outcome = await policies
          .get(name)
          ?.execute(run)
          .catch((error: unknown) => error);
        if (isCalled) return outcome instanceof Error ? `${name} failed` : name;
        expect(outcome).toBeInstanceOf(MemberSkipped);
      }
      return undefined;
    }
    return { choice, call, failing, stream, pass: (ms: number) => (now += ms) };
  }
  const timeout = new GRPCDeadlineExceededError("late");

  test("takes the only member, although it fails", async () => {
    const { call, failing } = choiceOf("a");
    failing.set("a", timeout);
    expect([await call(), await call()]).toEqual(["a failed", "a failed"]);
    failing.clear();
    expect(await call()).toBe("a");
  });

  test.each([timeout, new GRPCUnavailableError("refused")])("skips a member that failed: %s", async (error) => {
    const { call, failing, pass } = choiceOf("a", "b", "c");
    failing.set("a", error);
    expect(await call()).toBe("a failed");
    pass(skipMs - 1);
    expect([await call(), await call(["c", "a", "b"]), await call(["a", "c", "b"])]).toEqual(["b", "c", "c"]);
  });

  test.each([
    new GRPCCancelledError("by the caller"),
    new GRPCUnavailableError("14 UNAVAILABLE: etcdserver: no leader"),
  ])("does not skip a member for %s", async (error) => {
    const { call, failing } = choiceOf("a", "b");
    failing.set("a", error);
    expect([await call(), await call()]).toEqual(["a failed", "a failed"]);
  });

  test("tries a skipped member by one call, until that succeeds", async () => {
    const { call, failing, pass } = choiceOf("a", "b", "c");
    failing.set("a", timeout);
    await call();
    pass(skipMs);
    expect([await call(), await call()]).toEqual(["a failed", "b"]);
    pass(skipMs);
    failing.clear();
    expect([await call(), await call()]).toEqual(["a", "a"]);
  });

  test("is the member whose failure is the oldest, if all failed", async () => {
    const { call, failing, pass } = choiceOf("a", "b", "c");
    for (const name of ["a", "b", "c"]) failing.set(name, timeout);
    const found: (string | undefined)[] = [];
    for (let calls = 0; calls < 6; calls += 1) {
      found.push(await call());
      pass(1_000);
    }
    expect(found).toEqual(["a", "b", "c", "a", "b", "c"].map((name) => `${name} failed`));
  });

  test("is another member for each of several streams, if all failed and the first one is silent", async () => {
    const { call, failing, stream, pass } = choiceOf("a", "b", "c");
    for (const name of ["a", "b", "c"]) {
      failing.set(name, timeout);
      await call();
      pass(1_000);
    }
    failing.clear();
    const opened: (string | undefined)[] = [];
    for (let streams = 0; streams < 3; streams += 1) {
      opened.push(await call(undefined, stream));
      pass(1);
    }
    expect(opened).toEqual(["a", "b", "c"]);
  });

  test("takes an open stream for no response, and a report of its user for a failure", async () => {
    const { choice, call, failing, stream, pass } = choiceOf("a", "b");
    failing.set("a", timeout);
    await call();
    failing.clear();
    pass(skipMs);
    const opened = stream();
    expect(await call(["a"], () => opened)).toBe("a");
    expect(await call()).toBe("b");
    pass(skipMs);
    expect([await call(), await call()]).toEqual(["a", "a"]);
    choice.skip(opened);
    expect(await call()).toBe("b");
  });
});

describe("of three members, one of which is unreachable", () => {
  async function startMembers(): Promise<{ members: readonly TestEtcd[]; follower: TestEtcd }> {
    const members = await startTestEtcdCluster(3);
    onTestFinished(async () => {
      for (const member of members) member.signal("SIGCONT");
      await Promise.all(members.map((member) => member.stop()));
    });
    const follower = await waitUntil("the members have a leader", async () => {
      for (const member of members) {
        const response = await fetch(`${member.url}/v3/maintenance/status`, { method: "POST", body: "{}" });
        const { header, leader } = (await response.json()) as { header: { member_id: string }; leader?: string };
        if (leader !== undefined && leader !== header.member_id) return member;
      }
      return undefined;
    });
    return { members, follower };
  }
  const hostsOf = (members: readonly TestEtcd[]) => members.map(({ url }) => url);

  test("every call succeeds, and few calls wait for that member", async () => {
    const { members, follower } = await startMembers();
    let now = 0;
    const client = createEtcdClient({ hosts: hostsOf(members), clock: { monotonicMs: () => now } });
    onTestFinished(() => client.raw.close());
    let attempts = 0;
    const read = () =>
      client.call((options) => {
        attempts += 1;
        return client.raw.kv.range({ key: Buffer.from("/") }, options);
      });
    await Promise.all(Array.from({ length: 30 }, read));
    follower.signal("SIGSTOP");
    attempts = 0;
    for (let calls = 0; calls < 60; calls += 1) await read();
    // A third of the calls, if each chooses at random.
    expect(attempts).toBeLessThan(65);
    now += skipMs;
    attempts = 0;
    await Promise.all(Array.from({ length: 60 }, read));
    expect(attempts).toBeLessThan(65);
  });

  test("a stream leaves that member once, and no lease ends", async () => {
    const { members, follower } = await startMembers();
    const again: unknown[] = [];
    const log = {
      ...silentLog,
      debug: (message: string, fields?: unknown) => void (message === "watch not resumed" && again.push(fields)),
    };
    const store = createEtcdStore({ hosts: hostsOf(members), log });
    onTestFinished(() => store.close());
    const seen: Set<string>[] = Array.from({ length: 20 }, () => new Set());
    for (const keys of seen)
      store.watch("/w/", {
        reset: () => keys.clear(),
        put: ({ key }) => void keys.add(key),
        delete: () => undefined,
        synced: () => undefined,
      });
    const leases = await Promise.all(Array.from({ length: 20 }, () => store.lease(5)));
    const put = (key: string) => store.commit({ conditions: [], puts: [{ key, value: "" }], deletes: [] });
    await put("/w/before");
    await until(() => seen.every((keys) => keys.has("/w/before")));
    follower.signal("SIGSTOP");
    await put("/w/after");
    await until(() => seen.every((keys) => keys.has("/w/after")));
    expect(again).toEqual([]);
    // Time: the end of the leases, if nobody renews them.
    await delay(5_000);
    expect(leases.filter(({ live }) => !live)).toEqual([]);
  });
});
