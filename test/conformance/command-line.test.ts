import { ManagedServiceStatus } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandLine } from "@holdfast/testing/platform/command-line.ts";
import { createOperatorCommandLine } from "@holdfast/testing/platform/operator-command-line.ts";
import { startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

let gateway: TestGateway;
let shell: CommandLine;

beforeAll(async () => {
  gateway = await startTestGateway();
  shell = createOperatorCommandLine(gateway);
});
afterAll(async () => {
  shell.remove();
  await gateway.close();
});

const holdfast = (line: string, environment: Record<string, string> = {}) =>
  shell.runHere(line.split(" "), { environment });

describe("holdfast", () => {
  test("creates, shows, lists and deletes a service", async () => {
    const created = await holdfast(
      "services create orders --type postgresql --plan tier-1 --storage-gb 1 --tag team=a",
    );
    expect([created.code, created.stderr]).toEqual([0, ""]);
    expect(created.stdout).toMatch(/status +Pending/);
    expect((await holdfast("services list")).stdout).toMatch(/^NAME +STATUS[^\n]*\norders +Pending/);
    const { stdout } = await holdfast("--output json services get orders");
    expect(JSON.parse(stdout)).toMatchObject({ name: "orders", tags: { team: "a" } });
    expect((await holdfast("services delete orders")).code).toBe(2);
    expect((await holdfast("services delete orders --yes --wait")).code).toBe(0);
    expect((await holdfast("services get orders")).code).toBe(4);
  });

  test("waits, names each step, and ends with a line for psql", async () => {
    const created = holdfast("services create waited --type postgresql --wait");
    await waitUntil("its address was requested", () => gateway.state.summaries > 0);
    for (const service of gateway.state.services.values()) service.status = ManagedServiceStatus.RUNNING;
    const { code, stdout, stderr } = await created;
    expect(code).toBe(0);
    expect(stderr).toContain("waited: Pending");
    expect(stdout).toContain('psql "$(holdfast services connect waited --conninfo)"');
    expect((await holdfast("services connect waited --conninfo")).stdout).toMatch(/^host=.* passfile=\S+\n$/);
  });

  test("users, databases, configuration, catalog, operations and logs", async () => {
    gateway.state.logs.push("a line");
    const lines = [
      "users list waited",
      "databases list waited",
      "config set waited work_mem=8MB",
      "catalog",
      "services operations waited",
      "services logs waited",
    ];
    for (const line of lines) expect(await holdfast(line)).toMatchObject({ code: 0, stderr: "" });
    expect((await holdfast("users password waited app_user")).stdout).toMatch(/^[0-9a-f-]{36}\n$/);
    expect((await holdfast("services logs waited")).stdout).toMatch(/Z waited-\S+ info {4}a line\n/);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  const failures: [line: string, environment: Record<string, string>, code: number, message: RegExp][] = [
    ["services get none",                                    {},                                                            4,   /there is no service none/],
    ["services create waited --type postgresql",             {},                                                            5,   /waited is taken/],
    ["services create Bad --type pg --storage-gb 99999",     {},                                                           2,   /name: .*\n.*storage_size_gb: /],
    ["services create x",                                    {},                                                            2,   /--type/],
    ["services list",                                        { HOLDFAST_TOKEN: "hft_wrong" },                               3,   /unauthenticated/],
    ["services delete waited --yes",                         { HOLDFAST_API_KEY_ID: "hfk_reader", HOLDFAST_API_KEY_SECRET: "secret" }, 3, /services:write/],
    ["services wait waited --for Stopped --timeout 0",       {},                                                            6,   /not Stopped within 0 s/],
    ["services maintenance window waited never",             {},                                                            2,   /a day and an hour in UTC, such as "sunday 3"/],
    ["services list",                                        { HOLDFAST_DATA: "/none" },                                    2,   /there is no installation/],
    ["nonsense",                                             {},                                                            2,   /unknown command/],
    ["services restart waited",                              {},                                                            1,   /internal/],
  ];
  for (const [line, environment, code, message] of failures) {
    test(`${line} ends with ${code} and the reason`, async () => {
      const response = await holdfast(line, environment);
      expect(response.stderr).toMatch(message);
      expect(response.code).toBe(code);
    });
  }

  test("commands have the names of other tools", async () => {
    const listed = await holdfast("services list --output json");
    for (const line of ["services ls --json", "services ls -o json"]) expect(await holdfast(line)).toEqual(listed);
    for (const line of ["services show waited", "services info waited"])
      expect((await holdfast(line)).stdout).toMatch(/^name +waited$/m);
    const version = (await holdfast("version")).stdout;
    expect([version, (await holdfast("--version")).stdout]).toEqual([expect.stringMatching(/^\d+\.\d+/), version]);
    const created = await holdfast("services create named --type postgres --json");
    expect(JSON.parse(created.stdout)).toMatchObject({ database_type: "postgresql" });
  });

  test.each(["services config", "services config --help", "help services config"])(
    "%s names the word that is no command",
    async (line) => {
      const { code, stderr } = await holdfast(line);
      expect([code, stderr]).toEqual([
        2,
        "error: unknown command 'services config' (holdfast config is a command)\n(--help shows how)\n",
      ]);
    },
  );

  test.each([
    ["logs", "unknown command 'logs' (holdfast services logs, holdfast files logs, holdfast apps logs are commands)"],
    ["alerts list", "unknown command 'alerts list' (holdfast alerts has rules, create, "],
    ["queries list", "unknown command 'queries list' (holdfast queries has top, running, cancel, terminate)"],
    ["nonsense", "unknown command 'nonsense'\n"],
  ])("%s is refused with the commands that the user may mean", async (line, message) => {
    const { code, stderr } = await holdfast(line);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  test("help of a copy names what it lacks", async () => {
    expect((await holdfast("services fork --help")).stdout).toContain("without its replicas");
    expect((await holdfast("services restore --help")).stdout).toContain("without its replicas");
  });

  test("an error is followed by what to do", async () => {
    expect((await holdfast("services list", { HOLDFAST_TOKEN: "hft_wrong" })).stderr).toMatch(
      /\(unauthenticated\)\n {2}sign in again with holdfast login/,
    );
    const rejected = await holdfast("services create waited --type postgresql");
    expect(rejected.stderr).toMatch(/\(name_taken\)\n {2}Choose another name, or wait until/);
  });

  test("a service in Error exits with 7, and help with 0", async () => {
    for (const service of gateway.state.services.values()) service.status = ManagedServiceStatus.ERROR;
    expect((await holdfast("services wait waited")).code).toBe(7);
    expect(await holdfast("services --help")).toMatchObject({ code: 0, stderr: "" });
  });
});
