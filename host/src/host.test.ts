import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createEnrollmentKey } from "@holdfast/mtls/enrollment-key.ts";
import { tokenDigest } from "@holdfast/mtls/enrollment-file.ts";
import { Client, credentials, Metadata, type ServiceError, status as Code } from "@grpc/grpc-js";
import { createOutdatedCertificates } from "@holdfast/controller/fleet/host/outdated-certificates.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emptyProvider } from "@holdfast/testing/machines/empty-provider.ts";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { newInstallation, type TestInstallation } from "@holdfast/testing/controller/test-fleet.ts";
import { startHosting, type TestHosting } from "@holdfast/testing/machines/test-hosting.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { confirmHost, enrollHost, type HostIdentity } from "./host-calls.ts";

const signal = new AbortController().signal;

let installation: TestInstallation;
let hosting: TestHosting;

beforeAll(async () => {
  installation = await newInstallation();
  hosting = await startHosting(installation);
});
afterAll(async () => {
  await hosting?.close();
  await installation?.close();
});

const identityIn = async (stateDir: string) =>
  JSON.parse(await readFile(join(stateDir, "identity.json"), "utf8")) as HostIdentity;

describe("a join file", () => {
  it("makes a machine the named host once, and again after a crash in between", async () => {
    const file = await hosting.invite("first");
    const directory = await hosting.newDirectory();
    await hosting.join(file, directory, "127.101");
    const { certificate } = await identityIn(directory);
    await hosting.join(file, directory, "127.101");
    expect((await identityIn(directory)).certificate).toBe(certificate);
    expect(await readFile(join(directory, "identity.json"), "utf8")).not.toContain(file.token);
    // The token can be used again only with that key.
    await expect(hosting.join(file, await hosting.newDirectory(), "127.101")).rejects.toThrow("the token was used");
  });

  it("continues with the same key when the response was lost", async () => {
    const file = await hosting.invite("lost");
    const directory = await hosting.newDirectory();
    // The state of a crash before the response: all but the certificate is on the disk.
    const key = await createEnrollmentKey(directory).loadOrCreate(tokenDigest(file.token));
    await enrollHost(file, "127.102", key, hosting.controller.address, Date.now);
    expect((await hosting.hosts.getCurrent("lost"))?.object.status.enrollment?.spentBy).toBeDefined();
    await hosting.join(file, directory, "127.102");
    await identityIn(directory);
  });

  it.each([
    ["another token", { token: "wrong" }],
    ["another host", { host_id: "first" }],
    ["a host that there is not", { host_id: "none" }],
    ["another installation", { installation_id: "other" }],
  ])("gets no certificate with %s", async (_what, change) => {
    const file = await hosting.invite("misused");
    const directory = await hosting.newDirectory();
    await expect(hosting.join({ ...file, ...change }, directory, "127.103", 1_000)).rejects.toThrow(
      /token was used|could be reached/,
    );
    await expect(identityIn(directory)).rejects.toThrow("ENOENT");
  });

  it("does not send its token to a controller of another authority", async () => {
    const file = await hosting.invite("pinned");
    const changed = { ...file, ca_fingerprint: "00".repeat(32) };
    await expect(hosting.join(changed, await hosting.newDirectory(), "127.104", 1_000)).rejects.toThrow(
      "lacks the authority",
    );
    await hosting.join(file, await hosting.newDirectory(), "127.104");
  });

  it("is refused for another host's addresses, names that host, and can be used again", async () => {
    await hosting.join(await hosting.invite("holder"), await hosting.newDirectory(), "127.105");
    const file = await hosting.invite("late");
    expect(file.taken_blocks).toContain("127.105");
    const directory = await hosting.newDirectory();
    await expect(hosting.join(file, directory, "127.105")).rejects.toThrow("127.105.* belong to host holder");
    await hosting.join(file, directory, "127.106");
    // Addresses of a permanently removed host are free.
    await hosting.write("holder", (host) => ({ ...host, spec: { ...host.spec, destroyedAt: 1 } }));
    await hosting.join(await hosting.invite("heir"), await hosting.newDirectory(), "127.105");
  });

  it("of a newer invitation invalidates the older one", async () => {
    const older = await hosting.invite("twice");
    const newer = await hosting.invite("twice");
    await expect(hosting.join(older, await hosting.newDirectory(), "127.107")).rejects.toThrow("the token was used");
    await hosting.join(newer, await hosting.newDirectory(), "127.107");
  });
});

describe("a host that joined", () => {
  it("is reached by controllers under its identity, until it is removed", async () => {
    const served = await hosting.serve("reached", "127.110", emptyProvider);
    const remote = hosting.trust.connect(await hosting.write("reached"));
    await waitUntil("it is connected", () => remote.connected);
    expect(await remote.facts(signal)).toMatchObject({
      provider: "test",
      addressBlock: "127.110",
      listeners: expect.arrayContaining([`127.0.0.1:${served.port}`]),
    });
    await hosting.write("reached", (host) => ({ ...host, spec: { ...host.spec, destroyedAt: 1 } }));
    await waitUntil("it is cut", () => !remote.connected);
    await expect(remote.get("m", AbortSignal.timeout(500))).rejects.toThrow("aborted due to timeout");
    const identity = await identityIn(served.stateDir);
    await expect(confirmHost(identity, hosting.controller.address)).rejects.toThrow("not valid any more");
    remote.close();
  });

  it("is disconnected when another machine joins in its place, which is reached then", async () => {
    const old = await hosting.serve("moved", "127.111", emptyProvider);
    const remote = hosting.trust.connect(await hosting.write("moved"));
    await waitUntil("it is connected", () => remote.connected);
    await hosting.join(await hosting.invite("moved"), await hosting.newDirectory(), "127.111");
    await waitUntil("it is cut", () => !remote.connected);
    await expect(remote.get("m", AbortSignal.timeout(500))).rejects.toThrow("aborted due to timeout");
    await old.close();
    remote.close();
  });

  it("may only renew its certificate at controllers", async () => {
    const { stateDir } = await hosting.serve("curious", "127.112", emptyProvider);
    const identity = await identityIn(stateDir);
    const { address } = hosting.controller;
    await confirmHost(identity, address);
    const refused = await Promise.all(
      [
        "/holdfast.agent.v1.AgentService/RenewCertificate",
        "/holdfast.agent.v1.AgentService/IssueServerCertificate",
        "/holdfast.agent.v1.AgentService/Session",
        "/holdfast.agent.v1.AgentService/ReadPayload",
        "/holdfast.agent.v1.AgentService/WritePayload",
        "/holdfast.control.v1.PeerService/RunTask",
      ].map((path) => codeOf(path, address, identity)),
    );
    expect(refused).toEqual(refused.map(() => Code.PERMISSION_DENIED));
  });

  it("follows an authority rotation without an interruption", async () => {
    await hosting.serve("follower", "127.113", emptyProvider);
    const remote = hosting.trust.connect(await hosting.write("follower"));
    await waitUntil("it is connected", () => remote.connected);
    const { authority, machines, fleet } = hosting.controller;
    const { hosts } = hosting;
    // Hosts of other tests have no process that renews their certificates.
    for (const { object } of Array.from(hosts.values()))
      if (object.metadata.id !== "follower")
        await hosting.write(object.metadata.id, (host) => ({ ...host, spec: { ...host.spec, destroyedAt: 1 } }));
    const controller = { id: "c", address: "", startedAt: 0, draining: false };
    const controllers = [controller, { ...controller, id: "late", authorityGeneration: authority.generation }];
    const followers = createOutdatedCertificates({
      machines,
      hosts,
      fleet,
      authority,
      controllerRegistry: { controllers: () => controllers, subscribe: () => ({ close() {} }) },
    });
    const before = hosting.controller.authority.fingerprint;
    const followed = () => waitUntil("it followed", () => followers.outdated().length === 0);

    expect(await authority.beginRotation(0)).toBe(true);
    expect(followers.outdated()).toEqual(["controller/late", "host/follower"]);
    controllers.pop();
    await followed();
    await remote.get("m", signal);
    for (const event of ["trusted", "renewed"] as const) {
      expect(await authority.rotate(event)).toBe(true);
      await waitUntil(
        "it is known everywhere",
        async () => (await hosting.trust.invite("x", "h:1")).file.ca_fingerprint === authority.fingerprint,
      );
      await followed();
      await remote.get("m", signal);
    }
    expect(authority.fingerprint).not.toBe(before);
    remote.close();
  });
});

describe("certificates that last seconds", () => {
  it("are renewed by the host, each stored before the previous one expires", async () => {
    const other = await startTestEtcd();
    const apart = await newInstallation(other);
    // Renewal leaves a third of the lifetime, also on a busy machine.
    const short = await startHosting(apart, { identityMs: 9_000 });
    try {
      await short.serve("short", "127.120", emptyProvider);
      const remote = short.trust.connect(await short.write("short"));
      const serials = new Set<string>();
      await waitUntil("three were used", async () => {
        await remote.get("m", signal);
        const certificate = short.hosts.get("short")?.object.status.certificate;
        if (certificate?.previousSerial === "") serials.add(certificate.serial);
        return serials.size >= 3;
      });
      remote.close();
    } finally {
      await short.close();
      await apart.close();
      await other.stop();
    }
  });
});

/** Status of an empty call with the identity. */
function codeOf(path: string, address: string, { trustBundle, privateKey, certificate }: HostIdentity): Promise<Code> {
  const tls = credentials.createSsl(Buffer.from(trustBundle), Buffer.from(privateKey), Buffer.from(certificate));
  const client = new Client(address, tls, { "grpc.ssl_target_name_override": "localhost" });
  const bytes = (value: Buffer) => value;
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, bytes, bytes, Buffer.alloc(0), new Metadata(), (error: ServiceError | null) => {
      client.close();
      resolve(error?.code ?? Code.OK);
    });
  });
}
