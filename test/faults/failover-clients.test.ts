import { execFile } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { inImage } from "@holdfast/image/in-image.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { asRoot, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import { createFailoverFixture, type FailoverFixture } from "./failovers/failover-fixture.ts";

/** Enabled by `npm run faults -- --failovers`. */
const isEnabled = Number(process.env["HOLDFAST_TEST_FAILOVERS"] ?? "0") > 0;
const execute = promisify(execFile);
const scripts = join(import.meta.dirname, "failovers");

describe.skipIf(!isEnabled)("a failover as third-party clients see it", () => {
  let platform: Platform;
  let fixture: FailoverFixture;
  let image: TestImage | string;
  let directory = "";

  beforeAll(async () => {
    image = await testImage("failovers");
    platform = await startPlatform();
    fixture = await createFailoverFixture(platform, "sync", { random: createRandom(1) });
    directory = mkdtempSync(join(tmpdir(), "holdfast-failover-judges-"));
    const { connection, password } = fixture.main;
    for (const [name, text] of [
      ["ca.pem", connection.ca_certificate],
      ["password", `*:*:*:*:${password}\n`],
    ] as const)
      writeFileSync(join(directory, name), text, { mode: 0o600 });
    if (asRoot) for (const path of ["", "ca.pem", "password"]) chownSync(join(directory, path), testUid, testUid);
  }, 600_000);

  afterAll(async () => {
    await fixture?.stop();
    await platform?.remove();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  /**
   * Connection string of all nodes, as `all_nodes_uri`, with addresses, because the host's DNS lacks the names.
   */
  async function everyNode(): Promise<string> {
    const { connection } = fixture.main;
    const { hostname, searchParams } = new URL(connection.all_nodes_uri?.replace(/@[^/]*/, "@nodes") ?? "");
    expect([hostname, searchParams.get("target_session_attrs")]).toEqual(["nodes", "read-write"]);
    const hosts = fixture.main.service.nodes.map((node) => node.hostname);
    for (const host of hosts) expect(connection.all_nodes_uri).toContain(`${host}:${connection.port}`);
    const addresses = await Promise.all(hosts.map((host) => addressOf(platform, host)));
    return [
      `host=${hosts.join()} hostaddr=${addresses.join()} port=${connection.port} user=${connection.user} connect_timeout=2`,
      `dbname=${connection.database} target_session_attrs=read-write sslmode=verify-full sslrootcert=${directory}/ca.pem passfile=${directory}/password`,
    ].join(" ");
  }

  /** Runs a program of PostgreSQL from the node image; resolves with its output. */
  async function runOfImage(program: string, ...args: string[]): Promise<string> {
    const found = findSoftware(imagesDirectory(process.env), "postgresql", "17");
    if (found === undefined) throw new Error("no node image");
    const argv = [join(found.software, "bin", program), ...args];
    const launch = inImage(found.image.root, { argv, uid: testUid, binds: [directory], asRoot });
    return (await execute(launch.command, launch.args, { cwd: "/" })).stdout;
  }

  function asClient(argv: readonly string[]): Promise<string> {
    if (typeof image === "string") throw new Error(image);
    return image.run(argv, [directory, scripts]);
  }

  const dig = async (name: string) => {
    const [server = "", port = ""] = platform.admin.dns_server.split(":");
    const output = await asClient(["/usr/bin/dig", `@${server}`, "-p", port, "+noall", "+answer", name, "A"]);
    return output
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/));
  };

  /** Switches over to the replica while the program runs; resolves with the program's result. */
  async function switchedOver<T>(program: Promise<T>): Promise<T> {
    await fixture.untilReplicaCounts();
    const { primary, replica } = await fixture.roles();
    expectStatus(await platform.rest.post(fixture.path(`/nodes/${replica}/failover`), {}), 202);
    const before = { ...(await fixture.roles()), primary, replica };
    const output = await program;
    await fixture.settles(before);
    expect((await fixture.roles()).primary).toBe(replica);
    return output;
  }

  /** Pauses the primary's machine while the program runs; resolves with the program's result. */
  async function failedOver<T>(program: Promise<T>): Promise<T> {
    await fixture.untilReplicaCounts();
    const before = await fixture.roles();
    const repair = fixture.pause(fixture.pidsOf(before.primary, "machine"));
    try {
      await fixture.acceptsWrites(before.newHost, performance.now());
    } finally {
      repair();
    }
    const output = await program;
    expect((await fixture.settles(before)).primary).toBe(before.replica);
    return output;
  }

  it("dig: the service's name and that of its replicas swap, with a TTL of one second", async () => {
    await fixture.untilReplicaCounts();
    const { hostname } = fixture.main.service;
    const names = [hostname, `replica-${hostname}`];
    const before = await Promise.all(names.map(dig));
    expect(before.map(([line]) => line?.slice(0, 4))).toEqual(names.map((name) => [`${name}.`, "1", "IN", "A"]));
    await switchedOver(Promise.resolve());
    const after = await Promise.all(names.map(dig));
    expect(after.map(([line]) => line?.[4])).toEqual(before.map(([line]) => line?.[4]).toReversed());
  });

  it("psql: finds the primary among all nodes before and after a failover, while the old one is paused", async () => {
    const nodes = await everyNode();
    await runOfImage(
      "psql",
      "-Xqc",
      "CREATE TABLE judged (id bigint PRIMARY KEY); CREATE TABLE benched (id int)",
      nodes,
    );
    const output = await failedOver(
      (async () => {
        const seen = new Set<string>();
        const untilMs = performance.now() + 25_000;
        while (performance.now() < untilMs) {
          const output = await runOfImage(
            "psql",
            "-XAtc",
            "SELECT inet_server_addr(), pg_is_in_recovery()",
            nodes,
          ).catch(() => "");
          if (output !== "") seen.add(output.trim());
        }
        return [...seen];
      })(),
    );
    // Two addresses, and never the address of a replica.
    expect(output).toHaveLength(2);
    expect(output.every((output) => output.endsWith("|f"))).toBe(true);
  });

  it("psycopg: loses no row in a failover when it retries", async () => {
    const nodes = await everyNode();
    const script = join(scripts, "retrying-writer.py");
    const output = await failedOver(asClient(["/usr/bin/python3", script, nodes, "25"]));
    const [acknowledged, longest] = output.trim().split(" ").map(Number);
    console.log(`psycopg: ${acknowledged} rows, ${longest} s without one in a failover`);
    expect(acknowledged).toBeGreaterThan(100);
    expect((await runOfImage("psql", "-XAtc", "SELECT count(*), max(id) FROM judged", nodes)).trim()).toBe(
      `${acknowledged}|${acknowledged}`,
    );
  });

  it("pgbench: keeps every transaction that was reported committed, across a switchover", async () => {
    const nodes = await everyNode();
    const file = join(directory, "insert.sql");
    writeFileSync(file, "INSERT INTO benched VALUES (1);\n", { mode: 0o644 });
    const options = ["--no-vacuum", "--max-tries=10", "--client=4", `--file=${file}`];
    const run = async () => {
      const untilMs = performance.now() + 15_000;
      let processed = 0;
      let ended = 0;
      while (performance.now() < untilMs) {
        // Sessions end with a switchover, and pgbench with its sessions: a user starts it again.
        const output = await runOfImage("pgbench", ...options, "--transactions=100", nodes).catch((error: unknown) => {
          ended += 1;
          return (error as { stdout?: string }).stdout ?? "";
        });
        processed += Number(/transactions actually processed: (\d+)/.exec(output)?.[1] ?? "0");
      }
      return { processed, ended };
    };
    const { processed, ended } = await switchedOver(run());
    console.log(`pgbench: ${processed} transactions, ended ${ended} times by a switchover`);
    expect(processed).toBeGreaterThan(400);
    const rows = Number(await runOfImage("psql", "-XAtc", "SELECT count(*) FROM benched", nodes));
    // Transactions in progress when their session ended have an unknown outcome.
    expect(rows).toBeGreaterThanOrEqual(processed);
    expect(rows - processed).toBeLessThanOrEqual(4 * 100 * ended);
  });
});
