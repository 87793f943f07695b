import { once } from "node:events";
import { Agent } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  type AppAnswer,
  type AppMachine,
  type ReleaseChange,
  startAppMachine,
  testRelease,
} from "@holdfast/testing/machines/app-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type ImageRegistry, startImageRegistry } from "@holdfast/testing/servers/image-registry.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// Real containers on a real machine of the process provider, with images from a real registry; the controller is fake.

const skipped = asRoot ? await requireRecipes(import.meta.filename, "apps") : "needs root: containers of a machine";

describe.skipIf(skipped !== undefined)("an app", () => {
  let machine: AppMachine;
  let registry: ImageRegistry;
  let imageRef: string;

  beforeAll(async () => {
    [registry, machine] = await Promise.all([startImageRegistry(), startAppMachine("127.95")]);
    imageRef = await registry.push("shop/web", { NOTE: "from the image" });
  }, 120_000);
  afterAll(async () => {
    await machine.remove();
    await registry.remove();
  });

  const release = (id: string, change: ReleaseChange = {}) => testRelease(registry, { id, imageRef, ...change });
  /** A release without a path for health checks: it is ready once its program listens. */
  const byPort = { healthCheckPath: "" };
  const get = <T = AppAnswer>(path: string, agent?: Agent) => machine.get<T>(path, agent);
  const serve = (...releases: ReturnType<typeof release>[]) =>
    machine.converge({ releases, servingReleaseId: releases.at(-1)?.id ?? "" });
  const stateOf = (id: string) => (observation: InstanceObservation) =>
    observation.app?.releases.find((each) => each.id === id)?.state;
  /** Runs a shell script inside the container; resolves with its exit code and output. */
  const sh = (text: string) => get<string>(`/sh?script=${encodeURIComponent(text)}`);
  const connectTo = (host: string, port: number) => get<string>(`/connect?host=${host}&port=${port}`);

  test("an image is pulled by its digest and serves with its variables, as its user", async () => {
    const { failure } = await serve(release("r-1", byPort));
    expect(failure, machine.log()).toBeUndefined();
    const { app } = await machine.observed(({ state }) => state === "running");
    expect(app).toMatchObject({ servingReleaseId: "r-1", releases: [{ id: "r-1", state: "ready", reason: "" }] });
    expect(await get("/")).toEqual({ release: "r-1", note: "from the image", user: 1_000, pid: 1 });
    await waitUntil("its output is read", async () => (await machine.logLines()).includes("release r-1 listens"));
    // Its own name, as the names of a host resolve.
    expect(await connectTo("app", 8_080)).toBe("connected");
  });

  test("another release replaces it without a failed request, and the old one is deleted", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const outcomes = { failed: 0, "r-1": 0, "r-2": 0 };
    const replaced = new AbortController();
    const clients = Array.from({ length: 16 }, async () => {
      while (!replaced.signal.aborted || total(outcomes) < 5_000) {
        const answer = await get("/", agent).catch(() => undefined);
        if (answer?.release === "r-1" || answer?.release === "r-2") outcomes[answer.release] += 1;
        else outcomes.failed += 1;
      }
    });
    // Beside it first, as a controller does that switches all nodes of an app together.
    await machine.converge({ releases: [release("r-1", byPort), release("r-2")], servingReleaseId: "r-1" });
    await machine.observed((observation) => stateOf("r-2")(observation) === "ready");
    expect(outcomes["r-2"]).toBe(0);
    machine.forget();
    const slow = get("/slow");
    await waitUntil("it begins", async () => (await machine.logLines()).includes("a slow request begins"));
    expect((await serve(release("r-2"))).failure).toBeUndefined();
    expect(await get("/")).toMatchObject({ release: "r-2" });
    replaced.abort();
    await Promise.all(clients);
    agent.destroy();
    expect(await slow).toEqual({ release: "r-1" });
    expect(outcomes).toMatchObject({ failed: 0 });
    expect(outcomes["r-1"] * outcomes["r-2"]).toBeGreaterThan(0);
    const { app } = await machine.observed(({ app }) => app?.releases.length === 1);
    expect(app).toMatchObject({ servingReleaseId: "r-2", releases: [{ id: "r-2", state: "ready" }] });
    expect(await machine.filesOf("releases")).toEqual(["r-2"]);
    const lines = await machine.logLines();
    const own = ["release r-1 listens", "release r-2 starts", "a slow request begins", "release r-1 stops"];
    expect(lines.filter((line) => own.includes(line))).toEqual(own);
  });

  test("each line that a program prints is one line of the log, without colors", async () => {
    const text = "10%\r20%\na\u2028b\n\u001b[31mred\u001b[0m\n";
    await get(`/print?text=${encodeURIComponent(text)}`);
    await waitUntil("it is read", async () => (await machine.logLines()).includes("red"));
    expect((await machine.logLines()).slice(-3)).toEqual(["10%\ufffd20%", "a\ufffdb", "red"]);
  });

  test.each([
    [
      "r-ends",
      { environment: [{ name: "ENDS", value: "3" }], startTimeoutSeconds: 60 },
      "The program ended before it was ready, with the exit code 3.",
    ],
    [
      "r-500",
      { environment: [{ name: "ANSWERS", value: "500" }] },
      "The release is not ready after 2 seconds: /health responds with the status 500.",
    ],
    [
      "r-port",
      { healthCheckPath: "", port: 8_081 },
      "The release is not ready after 2 seconds: No program responds on port 8081 at 0.0.0.0 (one that listens at 127.0.0.1 alone is not reached).",
    ],
    [
      "r-none",
      { command: ["/bin/none"], startTimeoutSeconds: 60 },
      "The program ended before it was ready, with the exit code 1.",
    ],
  ])("the release %s never becomes ready, and the one before serves on", async (id, change, reason) => {
    machine.forget();
    await serve(release(id, { startTimeoutSeconds: 2, ...change }));
    const { app, state } = await machine.observed((observation) => stateOf(id)(observation) === "failed");
    const failed = app?.releases.find((each) => each.id === id);
    expect(failed?.reason).toBe(reason);
    expect(state).toBe("running");
    expect(app?.servingReleaseId).toBe("r-2");
    if (id === "r-ends") expect(failed?.lastLines).toEqual(Array.from({ length: 20 }, (_, n) => `line ${n + 11}`));
    if (id === "r-none") expect(failed?.lastLines.join()).toContain("no such file or directory");
    expect(await get("/")).toMatchObject({ release: "r-2" });
  });

  test.each([
    ["r-user", ["--config.user=ghost"], /unable to find user ghost: no matching entries in passwd file$/],
    [
      "r-arch",
      ["--architecture=s390x"],
      /^The image is for the architecture s390x, and the machines of apps have (amd64|arm64)\.$/,
    ],
    ["r-cmd", ["--clear=config.cmd"], /^The image has neither CMD nor ENTRYPOINT, and the app has no command\.$/],
  ])("the image of %s is not pulled again, and fails with its reason", async (id, options, reason) => {
    machine.forget();
    const image = await registry.push("shop/web", {}, options);
    await serve(release(id, { imageRef: image }));
    const { app } = await machine.observed((observation) => stateOf(id)(observation) === "failed");
    expect(app?.releases.find((each) => each.id === id)?.reason).toMatch(reason);
    expect(await get("/")).toMatchObject({ release: "r-2" });
  });

  test("an image that the registry does not have delays only its own release", async () => {
    machine.forget();
    await serve(release("r-lost", { imageRef: imageRef.replace(/[0-9a-f]{64}$/, "0".repeat(64)) }));
    const { app, state } = await machine.observed(
      ({ app }) => app?.releases.some(({ id, reason }) => id === "r-lost" && reason !== "") ?? false,
    );
    expect(app?.releases.find(({ id }) => id === "r-lost")?.reason).toMatch(
      /^The image could not be pulled and unpacked: .*manifest unknown/,
    );
    expect(state).toBe("running");
    expect(await get("/")).toMatchObject({ release: "r-2" });
    await serve(release("r-2"));
    await waitUntil("it is deleted", async () => (await machine.filesOf("releases")).join() === "r-2");
  });

  test("a program that is killed starts again, and runs on while its agent is killed", async () => {
    const [first] = machine.pidsOf("/app/server.mjs");
    machine.forget();
    process.kill(first ?? 0, "SIGKILL");
    const reason = "The program ended with the exit code 137 (SIGKILL) and is started again.";
    await machine.observed((observation) => observation.state === "starting" && observation.reason === reason);
    await waitUntil("it serves again", () => get("/"));
    expect((await machine.logLines()).slice(-3)).toEqual([reason, "release r-2 starts", "release r-2 listens"]);
    const check = (observation: InstanceObservation) => observation.checks.find(({ name }) => name === "program");
    expect(check(await machine.observed((each) => check(each)?.status === "degraded"))?.reason).toMatch(
      /^The program ended with the exit code 137 \(SIGKILL\) at \S+Z; it was started again once\.$/,
    );
    const [second] = machine.pidsOf("/app/server.mjs");
    expect(second).not.toBe(first);

    machine.killAgent();
    await machine.connected();
    machine.forget();
    await machine.observed(({ state, app }) => state === "running" && app?.servingReleaseId === "r-2");
    expect(machine.pidsOf("/app/server.mjs")).toEqual([second]);
    await serve(release("r-2"));
    expect(machine.pidsOf("/app/server.mjs")).toEqual([second]);
  });

  test("it is stopped, started and restarted", async () => {
    const app = { releases: [release("r-2")], servingReleaseId: "r-2" };
    const slowRequests = async () =>
      (await machine.logLines()).filter((line) => line === "a slow request begins").length;
    const before = await slowRequests();
    const slow = get("/slow");
    await waitUntil("a request is in progress", async () => (await slowRequests()) > before);
    await machine.converge(app, { running: false });
    await machine.observed(({ state }) => state === "stopped");
    expect(await slow).toEqual({ release: "r-2" });
    expect(machine.pidsOf("/app/server.mjs")).toEqual([]);
    await expect(get("/")).rejects.toThrow();
    await machine.converge(app);
    expect(await get("/")).toMatchObject({ release: "r-2" });
    const [former] = machine.pidsOf("/app/server.mjs");
    await machine.converge(app, { restartCount: 1n });
    expect(await get("/")).toMatchObject({ release: "r-2" });
    expect(machine.pidsOf("/app/server.mjs")).not.toContain(former);
  });

  test("control groups that the host has do not stop a container", async () => {
    const [former] = machine.pidsOf("/app/server.mjs");
    await machine.addControlGroup("app");
    const { failure } = await machine.converge(
      { releases: [release("r-2")], servingReleaseId: "r-2" },
      { restartCount: 2n },
    );
    expect(failure, machine.log()).toBeUndefined();
    expect(await get("/")).toMatchObject({ release: "r-2" });
    expect(machine.pidsOf("/app/server.mjs")).not.toContain(former);
  });

  test("a machine that is started again serves without a controller and without the registry", async () => {
    await registry.stop();
    machine.controller.closesStreams = true;
    await machine.reboot();
    await waitUntil("it serves", () => get("/"), { describe: machine.log });
    expect(await get("/")).toMatchObject({ release: "r-2", note: "from the image" });
    machine.forget();
    machine.controller.closesStreams = false;
    await machine.connected();
    await registry.start();
  });

  test("settings that cannot run are refused with the field, and change nothing", async () => {
    const { imageRef: image } = release("r-2");
    const refused = [
      { releases: [], servingReleaseId: "" },
      { releases: [release("r-2")], servingReleaseId: "r-3" },
      { releases: [release("../r")], servingReleaseId: "../r" },
      { releases: [release("r-3", { imageRef: image.replace(/@.*/, ":latest") })], servingReleaseId: "r-3" },
      { releases: [release("r-3", { environment: [{ name: "A B", value: "" }] })], servingReleaseId: "r-3" },
      { releases: [release("r-3", { port: 70_000 })], servingReleaseId: "r-3" },
    ];
    const failures = [];
    for (const app of refused) failures.push((await machine.converge(app)).failure);
    expect(failures.map((failure) => failure?.code)).toEqual(failures.map(() => "invalid_task"));
    expect(failures.map((failure) => failure?.message)).toEqual([
      "releases has not one or two releases.",
      "serving_release_id is not one of the releases.",
      "releases.id is not an id.",
      "releases.image_ref names no digest in a registry.",
      'releases.environment has no valid variable "A B".',
      "releases.port is not a port.",
    ]);
    expect(await get("/")).toMatchObject({ release: "r-2" });
  });

  test("its program reads the limits of its machine, and changes nothing of them", async () => {
    expect(await get("/limits")).toEqual({ memoryBytes: machine.memoryBytes });
    const groups = "/sys/fs/cgroup";
    const outcome = await sh(
      `for f in ${groups}/* ${groups}/*/* ${groups}/x ${groups}/memory/x; do
[ ! -d $f ] && { echo 1 >$f; } 2>/dev/null && echo written $f; done
for f in ${groups}/*/ ${groups}/*/*/; do echo $f; done`,
    );
    expect(outcome).toMatch(/cgroup/);
    expect(outcome).not.toMatch(/written|holdfast/);
  });

  describe("has no way out of its container", () => {
    test("no capability, no new privileges, and a filter of system calls", async () => {
      const status = await get<string>("/status");
      expect(status).toMatch(/^CapEff:\t0{16}$/m);
      expect(status).toMatch(/^CapInh:\t0{16}$/m);
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      expect(status).toMatch(/^Seccomp:\t2$/m);
      // Its processes, and a shell of this test.
      expect((await get<string[]>("/processes")).length).toBeLessThan(4);
    });

    test("only the internet is reachable: no metadata, no other machine, no port of the platform or of the host", async () => {
      const listener = createServer().listen(0, "0.0.0.0");
      await once(listener, "listening");
      const { port } = listener.address() as AddressInfo;
      const [, platformPort = ""] = machine.controller.address.split(":");
      const hostAddresses = Object.values(networkInterfaces())
        .flat()
        .flatMap((each) => (each?.family === "IPv4" && !each.internal ? [each.address] : []));
      const refused = await Promise.all([
        connectTo("127.0.0.1", port),
        connectTo("127.0.0.1", Number(platformPort)),
        connectTo("127.95.0.1", machine.port),
        connectTo("127.95.0.2", port),
        connectTo("169.254.169.254", 80),
        connectTo("169.254.77.1", port),
        connectTo("10.0.0.1", 80),
        connectTo("::1", port),
        connectTo("fd00:ec2::254", 80),
        ...hostAddresses.map((address) => connectTo(address, port)),
      ]);
      listener.close();
      for (const outcome of refused)
        expect(outcome).toMatch(/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EACCES|EADDRNOTAVAIL)$/);
    });

    test("mounts, namespaces, devices and the files of the machine are out of reach", async () => {
      expect(await sh("echo a >/proc/sys/kernel/core_pattern")).toMatch(/^2 .*(Read-only|denied)/);
      const paths = "/data /var/lib/holdfast /run/holdfast /holdfast /sys/kernel /sys/class";
      expect(await sh(`for path in ${paths}; do [ ! -e $path ] || echo found; done; read -r x </dev/vda`)).toMatch(
        /^2 (?!found)/,
      );
      expect(await sh("for f in /proc/1/environ; do read -r x <$f; done; echo /*")).not.toMatch(/holdfast|\/data/);
    });
  });
});

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
