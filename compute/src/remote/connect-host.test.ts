import { totalmem } from "node:os";
import { type Log, type LogFields, silentLog } from "@holdfast/common/log.ts";
import { afterEach, describe, expect, it } from "vitest";
import { emptyProvider } from "@holdfast/testing/machines/empty-provider.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { openProcessSubject } from "@holdfast/testing/machines/process-subject.ts";
import { createTestAuthority, type TestAuthority } from "@holdfast/testing/controller/test-authority.ts";
import { hostInstallation, startTestHost, type TestHost, testRoots } from "@holdfast/testing/machines/test-host.ts";
import { computeConformance } from "../compute-conformance.ts";
import { ComputeFailure, ComputePending, HostUnreachable } from "../compute-failure.ts";
import type { ComputeProvider, MachineFacts } from "../compute-provider.ts";
import { detectAbilities } from "../local/host-abilities.ts";
import { bootId } from "../local/process-identity.ts";

const abilities = await detectAbilities();

computeConformance("process, on another host", async () => {
  const local = await openProcessSubject(abilities);
  const host = await startTestHost(local.provider, await createTestAuthority());
  return {
    ...local,
    provider: await host.connect(),
    second: await host.connect(),
    async close() {
      await host.close();
      await local.close();
    },
  };
});

describe("a provider over the wire", () => {
  const { signal } = new AbortController();
  const closing: (() => Promise<void>)[] = [];
  let authority: TestAuthority;

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function served(
    provider: Partial<ComputeProvider>,
    options: { port?: number; log?: Log } = {},
  ): Promise<TestHost> {
    authority ??= await createTestAuthority();
    const host = await startTestHost({ ...emptyProvider, ...provider }, authority, options);
    closing.push(host.close);
    return host;
  }

  it("returns the host's facts", async () => {
    const remote = await (await served({})).connect();
    const facts = await remote.facts(signal);
    expect(facts).toMatchObject({
      provider: "test",
      version: "1.2.3",
      bootId: bootId(),
      addressBlock: "127.99",
      tiers: [{ name: "fast", totalBytes: facts.diskTotalBytes, freeBytes: expect.any(Number), roots: testRoots }],
    });
    expect(facts.memoryTotalBytes / totalmem()).toBeCloseTo(1, 1);
    expect(facts.diskTotalBytes).toBeGreaterThan(facts.diskFreeBytes);
    expect(facts.diskFreeBytes).toBeGreaterThan(0);
  });

  it.each([
    ["ComputeFailure", new ComputeFailure("No."), new ComputeFailure("No.")],
    ["ComputePending", new ComputePending("Soon."), new ComputePending("Soon.")],
    [
      "a full disk",
      Object.assign(new Error("write"), { code: "ENOSPC" }),
      new ComputeFailure("The host's disk is full."),
    ],
    [
      "any other error, without its message,",
      new Error("hfsecret"),
      new Error("host h-1 refused: The host failed to carry out the request; its log has the error."),
    ],
  ])("transmits %s", async (_name, thrown, expected) => {
    const remote = await (await served({ get: () => Promise.reject(thrown) })).connect();
    const error = await remote.get("m", signal).catch((caught: unknown) => caught);
    expect(error).toEqual(expected);
    expect((error as Error).constructor).toBe(expected.constructor);
  });

  it("ends a call at the host when its caller cancels, and throws the caller's reason", async () => {
    let ended = () => {};
    const endedThere = new Promise<void>((resolve) => void (ended = resolve));
    const began = Promise.withResolvers<void>();
    const provider: Partial<ComputeProvider> = {
      stop: (_id, _graceMs, hostSignal) => {
        began.resolve();
        return new Promise((_, reject) => {
          hostSignal.addEventListener("abort", () => {
            ended();
            reject(hostSignal.reason);
          });
        });
      },
    };
    const remote = await (await served(provider)).connect();
    const caller = new AbortController();
    const reason = new Error("enough");
    const call = remote.stop("m", 1, caller.signal);
    const refused = expect(call).rejects.toBe(reason);
    await began.promise;
    caller.abort(reason);
    await refused;
    await endedThere;
  });

  it("does not count a fence as done when the host disconnects during it", async () => {
    const began = Promise.withResolvers<void>();
    const host = await served({
      fence: () => {
        began.resolve();
        return new Promise(() => {});
      },
    });
    const remote = await host.connect();
    const refused = expect(remote.fence("m", signal)).rejects.toThrow(HostUnreachable);
    await began.promise;
    await host.stop();
    await refused;
  });

  it("throws HostUnreachable when nothing listens at the host's address", async () => {
    const host = await served({});
    const remote = await host.connect(undefined, { connectTimeoutMs: 5_000 });
    await remote.get("m", signal);
    await host.stop();
    await expect(remote.get("m", signal)).rejects.toThrow(HostUnreachable);
    await expect(remote.list(signal)).rejects.toThrow(HostUnreachable);
    expect(remote.connected).toBe(false);
  });

  it("reports every machine again after a reconnection", async () => {
    const [port = 0] = await freePorts(1);
    const host = await served({ list: async () => [] }, { port });
    const remote = await host.connect();
    const reported: string[] = [];
    remote.watch((id) => reported.push(id));
    await expect.poll(() => remote.connected).toBe(true);
    await host.stop();
    await expect.poll(() => remote.connected).toBe(false);
    await served({ list: async () => [factsOf("m-1"), factsOf("m-2")] }, { port });
    await expect.poll(() => reported).toEqual(["m-1", "m-2"]);
    expect(remote.connected).toBe(true);
  });

  it("lists more machines than fit into one message", async () => {
    const all = Array.from({ length: 1_001 }, (_, index) => factsOf(`m-${index}`));
    const remote = await (await served({ list: async () => all })).connect();
    expect(await remote.list(signal)).toEqual(all);
  });

  it("transmits the kernel of a virtual machine, and none for a container", async () => {
    const requested: unknown[] = [];
    const virtual = { ...factsOf("m-1"), guestKernel: "guest-1" };
    const remote = await (
      await served({
        admit: async (spec) => {
          requested.push(spec.guestKernel);
          return { admitted: true };
        },
        get: async (id) => (id === "m-1" ? virtual : factsOf(id)),
        guestKernels: { replace: async (...args) => void requested.push(args.slice(0, 2)) },
      })
    ).connect();
    const spec = testMachineSpec({ kind: "virtual_machine" });
    await remote.admit({ ...spec, guestKernel: "guest-1" }, signal);
    await remote.admit(spec, signal);
    await remote.guestKernels?.replace("m-1", "guest-2", signal);
    expect(requested).toEqual(["guest-1", undefined, ["m-1", "guest-2"]]);
    expect(await remote.get("m-1", signal)).toEqual(virtual);
    expect(await remote.get("m-2", signal)).toEqual(factsOf("m-2"));
    const without = await (await served({})).connect();
    await expect(without.guestKernels?.replace("m-1", "guest-2", signal)).rejects.toThrow("share the host's kernel");
  });

  it("transmits packet filter rules unchanged", async () => {
    const applied: unknown[] = [];
    const apply = async (rules: unknown) => void applied.push(rules);
    const remote = await (await served({ edge: { apply } })).connect();
    const owner = { kind: "managed-service", id: "s" };
    const rules = [
      { owner, to: "10.77.0.2", port: 5432, from: ["10.0.0.0/8", "::/0"] },
      { owner, to: "10.77.0.3", port: null, from: [] },
    ];
    await remote.edge?.apply(rules, signal);
    expect(applied).toEqual([rules]);
  });

  it("never logs the token of an enrollment, also when the start fails", async () => {
    const lines: string[] = [];
    const log = recordingLog(lines);
    const start = async () => {
      throw new Error("no start");
    };
    const remote = await (await served({ start }, { log })).connect();
    const enrollment = { installationId: "test", controllers: [], caFingerprint: "00", token: "hf-very-secret" };
    await expect(remote.start("m", enrollment, signal)).rejects.toThrow("host h-1 refused");
    expect(lines.join()).toContain("startMachine");
    expect(lines.join()).not.toContain("hf-very-secret");
  });

  describe("responds to controllers of its installation only:", () => {
    it.each([
      ["a machine", () => authority.identityOf(hostInstallation, { kind: "machine", id: "m" })],
      ["another host", () => authority.identityOf(hostInstallation, { kind: "host", id: "h-2" })],
      ["a gateway", () => authority.identityOf(hostInstallation, { kind: "gateway", id: "g" })],
      ["a controller of another installation of this authority", () => authority.identityOf("other", controller)],
      [
        "a controller of another authority",
        async () => (await createTestAuthority()).identityOf(hostInstallation, controller),
      ],
      [
        "a controller whose certificate expired",
        () => authority.identityOf(hostInstallation, controller, new Date(Date.now() - 1_000)),
      ],
    ])("not %s", async (_name, identity) => {
      const requested: string[] = [];
      const host = await served({ get: async (id) => void requested.push(id) });
      const remote = await host.connect(await identity(), { connectTimeoutMs: 1_000 });
      await expect(remote.get("m", signal)).rejects.toThrow(/refused|does not respond/);
      expect(remote.connected).toBe(false);
      expect(requested).toEqual([]);
      // The same host responds to a controller.
      await (await host.connect()).get("m", signal);
      expect(requested).toEqual(["m"]);
    });

    it("and a controller calls only the intended host, with a current certificate", async () => {
      const host = await served({});
      const other = await host.connect(undefined, { hostId: "h-2", connectTimeoutMs: 1_000 });
      const superseded = await host.connect(undefined, { isValid: () => false, connectTimeoutMs: 1_000 });
      await Promise.all(
        [other, superseded].map((remote) => expect(remote.get("m", signal)).rejects.toThrow(HostUnreachable)),
      );
    });
  });
});

const controller = { kind: "controller", id: "c-1" } as const;

function factsOf(id: string): MachineFacts {
  const plan = { vcpu: 1, memoryBytes: 1 << 30 };
  return {
    id,
    state: "running",
    address: "127.99.0.1",
    publicAddress: "203.0.113.17",
    diskBytes: 1 << 30,
    plan,
    image: "trixie-0",
    hasData: true,
    starts: 1,
    snapshots: [],
  };
}

function recordingLog(lines: string[]): Log {
  const note = (message: string, fields: LogFields = {}) => {
    const described = Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? value.stack : value]);
    lines.push(`${message} ${JSON.stringify(described)}`);
  };
  return { ...silentLog, debug: note, info: note, warn: note, error: note };
}
