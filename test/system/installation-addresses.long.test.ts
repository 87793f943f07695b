import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { createClientNamespace } from "@holdfast/testing/network/client-namespace.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type AdminFile, preparedDisks, type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { tryStart } from "./installation/try-start.ts";

describe("an installation and its network", () => {
  let platform: Platform;
  let service: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ environment: preparedDisks });
    service = await createServices(platform).createRunning("first");
    await queryOnce(platform, service.connection, service, "CREATE TABLE kept AS SELECT 7 AS answer");
  });
  afterAll(() => platform?.remove());

  it("runs beside another one, and neither sees the other's objects", async () => {
    const second = await startPlatform();
    try {
      const otherService = await createServices(second).createRunning("first");
      expect(otherService.connection.nodes[0]?.addresses).not.toEqual(service.connection.nodes[0]?.addresses);
      await queryOnce(second, otherService.connection, otherService, "CREATE TABLE kept AS SELECT 8 AS answer");
      const rows = await queryOnce(platform, service.connection, service, "SELECT answer FROM kept");
      expect(rows).toEqual([{ answer: 7 }]);
      const foreign = second.rest.as(platform.owner);
      expect((await foreign.get("/managed-services")).status).toBe(401);
    } finally {
      await second.remove();
    }
    await queryOnce(platform, service.connection, service, "SELECT 1");
  });

  it("is reached from other machines at its advertised address, and at a new one after a move", async (context) => {
    if (process.getuid?.() !== 0) context.skip("only root can create networks");
    const elsewhere = join(platform.directory, "elsewhere");
    const foreign = await tryStart(["up", "--data", elsewhere, "--advertise", "192.0.2.9"]);
    expect(foreign.output).toContain("--advertise: 192.0.2.9 is not an address of this machine");
    const clients = await Promise.all([createClientNamespace(), createClientNamespace()]);
    try {
      const addresses = service.connection.nodes[0]?.addresses;
      for (const place of clients) {
        // Machines run on; their addresses of controllers are outdated.
        await platform.killControlPlane();
        await platform.start(["--advertise", place.gateway]);
        const admin = JSON.parse(readFileSync(join(platform.directory, "admin.json"), "utf8")) as AdminFile;
        expect(new URL(admin.base_url).hostname).toBe(place.gateway);
        expect(admin.grpc_url).toBe(admin.base_url);
        expect(new URL(admin.inference_url).hostname).toBe(place.gateway);
        // Its certificate is renewed for its new address.
        const healthz = admin.inference_url.replace(/\/v1$/, "/healthz");
        const trusting = { NODE_EXTRA_CA_CERTS: admin.ca_file };
        await waitUntil("its models are reached too", async () =>
          (await place.node(["-e", get, healthz], trusting)).includes('{"status":"ok"}'),
        );
        const listed = await place.node([holdfast, "services", "list"], { HOLDFAST_DATA: platform.directory });
        expect(listed).toContain(service.connection.host);
        for (const transport of ["udp", "tcp"])
          expect(
            JSON.parse(await place.node(["-e", ask, admin.dns_server, service.connection.host, transport])),
          ).toEqual(addresses);
        // The stored health of the service may be an old one.
        await waitUntil("its machine has found it", () =>
          asOperator(platform, FleetService, async (fleet) =>
            (await fleet.listSessions({})).sessions.some(({ machineId }) => machineId === service.service.nodes[0]?.id),
          ),
        );
        await waitUntil("the service is healthy", async () => {
          const { health } = await createServices(platform).get(service.service.id);
          return health.status === "healthy";
        });
      }
      const [first, second] = clients;
      const { base_url: now } = JSON.parse(readFileSync(join(platform.directory, "admin.json"), "utf8")) as AdminFile;
      expect(await second.connect(second.gateway, Number(new URL(now).port))).toBe("open");
      expect(await first.connect(first.gateway, Number(new URL(now).port))).toBe("refused");
    } finally {
      await Promise.all(clients.map((place) => place.close()));
    }
  });
});

const holdfast = join(import.meta.dirname, "..", "..", "bin", "holdfast.js");
/** Prints the response at the URL, or why it is not reachable. */
const get = `
const print = (text) => process.stdout.write(text);
await fetch(process.argv[1]).then(async (answer) => print(await answer.text()), (error) => print(String(error.cause)));
`;
const ask = `
const { queryDns } = await import(${JSON.stringify(join(import.meta.dirname, "..", "..", "testing", "src", "network", "dns-query.ts"))});
const [server, name, transport] = process.argv.slice(1);
const { answers } = await queryDns(server, { name, transport });
process.stdout.write(JSON.stringify(answers.filter(({ type }) => type === "A").map(({ data }) => data)));
`;
