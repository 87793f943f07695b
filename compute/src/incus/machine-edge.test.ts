import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EdgeFigures, EdgeWork } from "@holdfast/testing/machines/edge-worker.ts";

const run = promisify(execFile);
const worker = join(import.meta.dirname, "..", "..", "..", "testing", "src", "machines", "edge-worker.ts");
const able =
  process.getuid?.() === 0 &&
  (await run("nft", ["--version"]).then(
    () => true,
    () => false,
  ));

/** A host and its machine, each a network namespace, with a link between them as Incus creates it. */
const [host, machine] = [`hf-edge-${process.pid}`, `hf-behind-${process.pid}`];
const block = "10.203";
const [gateway, address, port] = [`${block}.0.1`, `${block}.0.2`, 5432];
const ip = async (...args: string[]) => (await run("ip", args)).stdout;

describe.skipIf(!able)(`the edge of machines${able ? "" : " (skipped: it needs root and nftables)"}`, () => {
  let server: ChildProcess | undefined;

  beforeAll(async () => {
    for (const name of [host, machine]) await ip("netns", "add", name);
    const link = "hf203-2";
    await ip("-n", host, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", machine);
    for (const [name, dev, own, other] of [
      [host, link, gateway, address],
      [machine, "eth0", address, gateway],
    ] as const) {
      await ip("-n", name, "address", "add", `${own}/32`, "dev", dev);
      for (const each of ["lo", dev]) await ip("-n", name, "link", "set", each, "up");
      await ip("-n", name, "route", "add", `${other}/32`, "dev", dev);
    }
    const program = `require("node:net").createServer((socket) => socket.on("error", () => undefined).resume())
      .listen(${port}, "${address}", () => process.stdout.write("listening"))`;
    server = spawn("ip", ["netns", "exec", machine, process.execPath, "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(server.stdout as NodeJS.ReadableStream, "data");
  });
  afterAll(async () => {
    server?.kill("SIGKILL");
    for (const name of [host, machine]) await ip("netns", "delete", name).catch(() => undefined);
  });

  it("refuses no admitted client, and ends no session, while its rules are replaced", async () => {
    const owner = { kind: "managed-service", id: "s" };
    const rules = [
      { owner, to: address, port, from: ["192.0.2.0/24", `${block}.0.0/16`] },
      { owner, to: `${block}.0.3`, port, from: ["198.51.100.0/24"] },
    ];
    const work: EdgeWork = { block, rules, address, port, times: 60 };
    const figures = JSON.parse(
      await ip("netns", "exec", host, process.execPath, worker, JSON.stringify(work)),
    ) as EdgeFigures;
    expect(figures.lost).toEqual([]);
    expect(figures.sent).toBeGreaterThan(1_000);
    expect(figures.started).toBeGreaterThan(10);
    const elsewhere: EdgeWork = { ...work, rules: rules.slice(1), times: 0 };
    expect(
      JSON.parse(await ip("netns", "exec", host, process.execPath, worker, JSON.stringify(elsewhere))),
    ).toMatchObject({ lost: expect.arrayContaining(["ECONNREFUSED"]) });
  });
});
