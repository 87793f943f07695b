import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandsOfPage, createPageShell, type PageShell } from "./commands/page-shell.ts";

const longMs = 900_000;
const skip = await requireRecipes(import.meta.filename, "kafka");

// Only root gives a client other names than those of the host.
describe.skipIf(skip !== undefined || !asRoot)("the commands of a user of Kafka", { timeout: longMs }, () => {
  let platform: Platform;
  let shell: PageShell;

  beforeAll(async () => {
    platform = await startPlatform();
    shell = createPageShell(platform);
  }, longMs);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
  }, longMs);

  const run = (line: string) => shell.run(line);
  const json = <T>(line: string) => shell.json<T>(line);

  it("do on a real service what the page shows", async () => {
    const commands = commandsOfPage("kafka");
    expect(commands.length).toBeGreaterThanOrEqual(12);
    const printed = new Map<string, string>();
    for (const command of commands) {
      if (command.startsWith("holdfast groups list")) {
        await run('echo "7:seven" | holdfast services connect bus -- -P -t orders -K:');
        expect(
          await run("holdfast services connect bus -- -X auto.offset.reset=earliest -q -e -G billing orders"),
        ).toBe("seven\n");
      }
      const [backup] = command.includes(" ID ") ? await json<{ id: string }[]>("holdfast backups list bus") : [];
      const line = command.replace(" ID ", ` ${backup?.id} `).replace("groups reset", "groups reset --yes");
      printed.set(command, await run(line));
    }
    const outputOf = (start: string) => printed.get(commands.find((each) => each.startsWith(start)) ?? "");
    expect(outputOf("holdfast services connect")).toContain("1 brokers");
    expect(outputOf("holdfast groups list")).toMatch(/billing +Empty +0/);
    expect(outputOf("holdfast groups reset")).toMatch(/billing[\s\S]*1/);
    expect(outputOf("holdfast metrics")).toContain("kafka_consumer_lag");
    const { partition_states: partitions } = await json<{ partition_states: { in_sync: number[] }[] }>(
      "holdfast topics get bus orders",
    );
    expect(partitions.map(({ in_sync: inSync }) => inSync.length)).toEqual([3, 3, 3, 3, 3, 3]);
    expect(await run("holdfast services connect before -- -C -t orders -o beginning -e -q -K:")).toBe("7:seven\n");
    await waitUntil("all brokers are in sync", async () => {
      const members = await json<{ connected: boolean; sync_state: string }[]>("holdfast nodes status bus");
      return members.length === 3 && members.every((each) => each.connected && each.sync_state === "streaming");
    });
  });

  it("connect to all brokers before their names resolve", async () => {
    const commandLine = createCommandLine({ HOLDFAST_DATA: platform.directory });
    try {
      const { stdout } = await commandLine.run(["services", "connect", "bus", "--", "-L"]);
      expect(stdout).toContain("3 brokers");
      const read = await commandLine.run("services connect bus -- -C -t orders -o beginning -e -q -K:".split(" "));
      expect(read.stdout).toContain("7:seven");
    } finally {
      commandLine.remove();
    }
  });

  it("copy, change and stop it, and show its connections", async () => {
    await run("holdfast services delete events --yes --wait");
    await run("holdfast services fork bus copy --wait");
    expect(await run("holdfast services connect copy -- -C -t orders -o beginning -e -q")).toBe("seven\n");
    expect((await json<{ name: string }[]>("holdfast topics list copy")).map(({ name }) => name)).toEqual(["orders"]);
    await run("holdfast topics delete copy orders --yes");
    expect(await json<unknown[]>("holdfast topics list copy")).toEqual([]);
    await run("holdfast services delete copy --yes --wait");
    const before = "holdfast services";
    for (const change of [
      "expand before --storage-gb 60",
      "resize before --plan tier-1",
      "stop before",
      "start before",
    ])
      await run(`${before} ${change} --wait`);
    await run(`${before} update before --private-listener`);
    await run(`${before} wait before`);
    const connection = await json<Record<string, unknown>>(`${before} connection before`);
    const host = String(connection.host);
    expect(connection).toMatchObject({
      uri: `${host}:9092`,
      port: 9092,
      bootstrap_servers: `${host.replace(/^([^.]+)/, "$1-1")}:9092`,
      security_protocol: "SASL_SSL",
      sasl_mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-512"],
      private_bootstrap_servers: expect.stringMatching(/:9095$/),
      private_security_protocol: "SASL_PLAINTEXT",
      private_sasl_mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-512"],
    });
    expect(await run("holdfast services connect before -- -C -t orders -o beginning -e -q")).toBe("seven\n");
  });
});
